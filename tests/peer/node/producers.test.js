// Producers: access modes, names, deduplication, required encryption, terminated topics, schemas.
'use strict';

const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');
const {
  ask, connect, inNamespace, pathOf, receive, rest, textOf, texts, topicOf, until,
} = require('./support');

const ORDER = JSON.stringify({
  type: 'record', name: 'Order', fields: [{ name: 'id', type: 'long' }],
});
const MORE = JSON.stringify({
  type: 'record',
  name: 'Order',
  fields: [{ name: 'id', type: 'long' }, { name: 'note', type: ['null', 'string'], default: null }],
});
const INVOICE = JSON.stringify({
  type: 'record', name: 'Invoice', fields: [{ name: 'sum', type: 'double' }],
});
let client;

before(() => { client = connect(); });
after(() => client.close());

function making(topic, accessMode) {
  return client.createProducer({ topic, accessMode });
}

test('an exclusive producer is alone', async (t) => {
  const topic = topicOf(t);
  const first = await making(topic, 'Exclusive');
  await assert.rejects(making(topic, 'Exclusive'), /ProducerFenced/);
  await assert.rejects(making(topic, 'Shared'), /ProducerBusy/);
  await first.close();
  await making(topic, 'Exclusive');
});

test('a producer that fences ends the other', async (t) => {
  const topic = topicOf(t);
  const first = await making(topic, 'Exclusive');
  const bystander = await client.createProducer({ topic: `${topic}-bystander` });
  const fencing = await making(topic, 'ExclusiveWithFencing');
  await fencing.send({ data: Buffer.from('two') });
  await assert.rejects(first.send({ data: Buffer.from('three') }), /ProducerFenced|AlreadyClosed/);
  await bystander.send({ data: Buffer.from('on the same connection') });
});

test('a producer waits for its turn', async (t) => {
  const topic = topicOf(t);
  const first = await making(topic, 'Exclusive');
  let made = false;
  const waiting = making(topic, 'WaitForExclusive').then((producer) => {
    made = true;
    return producer;
  });
  await until(async () => (await ask('GET', `${pathOf(topic)}/stats`)).waitingPublishers === 1);
  assert.equal(made, false);
  await first.close();
  await (await waiting).send({ data: Buffer.from('alone') });
});

test('producers share a topic but not a name', async (t) => {
  const topic = topicOf(t);
  await client.createProducer({ topic, producerName: 'p' });
  await assert.rejects(client.createProducer({ topic, producerName: 'p' }), /ProducerBusy/);
  assert.notEqual((await client.createProducer({ topic })).getProducerName(), 'p');
});

test('numbered messages are stored once', async () => {
  const topic = await inNamespace('once', 'deduplication', true);
  const consumer = await client.subscribe({ topic, subscription: 's' });
  for (const count of [10, 11]) {
    const producer = await client.createProducer({ topic, producerName: 'till', batchingEnabled: false });
    for (let number = 1; number <= count; number += 1) {
      await producer.send({ data: Buffer.from(`m${number}`), sequenceId: number });
    }
    await producer.close();
  }
  assert.deepEqual(await rest(consumer), texts(1, 12));
});

test('encryption can be required', async () => {
  const topic = await inNamespace('encrypted', 'encryptionRequired', true);
  const quick = connect({ operationTimeoutSeconds: 3 }); // it asks again and again so long
  await assert.rejects(quick.createProducer({ topic }), /Failed to create producer: TimeOut/);
  await quick.close();
  await ask('POST', 'namespaces/public/node-encrypted/encryptionRequired', false);
  await client.createProducer({ topic });
});

test('a terminated topic takes nothing and is read to its end', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({ topic, subscription: 's' });
  const producer = await client.createProducer({ topic });
  await producer.send({ data: Buffer.from('last') });
  await ask('POST', `${pathOf(topic)}/terminate`);
  await assert.rejects(client.createProducer({ topic }), /TopicTerminated/);
  assert.equal(textOf((await receive(consumer, 1))[0]), 'last');
});

test('a definition that may follow is taken, another one is refused', async (t) => {
  const topic = topicOf(t);
  const avro = (schema) => ({ schemaType: 'Avro', name: 'x', schema });
  await client.createProducer({ topic, schema: avro(ORDER) });
  await client.createProducer({ topic, schema: avro(MORE) });
  await assert.rejects(client.createProducer({ topic, schema: avro(INVOICE) }), /IncompatibleSchema/);
  await assert.rejects(
    client.subscribe({ topic, subscription: 's', schema: avro(INVOICE) }), /IncompatibleSchema/,
  );
  await assert.rejects(
    client.createProducer({ topic, schema: { schemaType: 'Json', name: 'x', schema: ORDER } }),
    /IncompatibleSchema/,
  );
  await client.createProducer({ topic }); // bytes pass
  const found = await ask('GET', `schemas/${topic.replace('persistent://', '')}/schemas`);
  assert.deepEqual(found.getSchemaResponses.map((each) => each.version), [0, 1]);
});
