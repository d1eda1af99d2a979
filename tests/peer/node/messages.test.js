// What a message carries, how large it may be, where it goes, and when it comes.
'use strict';

const assert = require('node:assert/strict');
const { generateKeyPairSync } = require('node:crypto');
const { after, before, test } = require('node:test');
const {
  Pulsar, ask, backlogOf, connect, inNamespace, pathOf, receive, rest, sendAll, textOf, texts, topicOf, until,
} = require('./support');

const LIMIT_BYTES = 5 * 1024 * 1024;
const DELAY_MS = 1_500;
/** On a busy machine client and broker may wait for the processor. */
const LATE_MS_MAX = 2_000;
let client;

before(() => { client = connect(); });
after(() => client.close());

for (const [compressionType, batchingEnabled] of [
  ['None', false], ['None', true], ['LZ4', true], ['Zlib', true], ['ZSTD', false], ['SNAPPY', true],
]) {
  test(`messages arrive as they were sent, ${compressionType}, ${batchingEnabled}`, async (t) => {
    const topic = topicOf(t);
    const consumer = await client.subscribe({ topic, subscription: 's' });
    const producer = await client.createProducer({
      topic, producerName: 'author', compressionType, batchingEnabled, batchingMaxMessages: 7,
    });
    const sent = [];
    for (let number = 0; number < 30; number += 1) {
      sent.push(producer.send({
        data: Buffer.alloc(number + 1, number),
        properties: { number: String(number), empty: '' },
        partitionKey: `key ${number % 3}`,
        orderingKey: 'é',
        eventTimestamp: 1_000 + number,
        sequenceId: 100 + number,
      }));
    }
    await producer.flush();
    await Promise.all(sent);
    for (const [number, message] of (await receive(consumer, 30)).entries()) {
      assert.deepEqual(message.getData(), Buffer.alloc(number + 1, number));
      assert.deepEqual({ ...message.getProperties() }, { number: String(number), empty: '' });
      assert.equal(message.getPartitionKey(), `key ${number % 3}`);
      assert.equal(message.getOrderingKey(), 'é');
      assert.equal(message.getEventTimestamp(), 1_000 + number);
      assert.equal(message.getProducerName(), 'author');
      assert.equal(message.getTopicName(), topic);
      assert.equal(message.getRedeliveryCount(), 0);
    }
  });
}

test('large messages come in chunks', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({ topic, subscription: 's', subscriptionType: 'Shared' });
  const producer = await client.createProducer({ topic, chunkingEnabled: true, batchingEnabled: false });
  const large = Buffer.alloc(12 * 1024 * 1024, 'abc');
  await producer.send({ data: large });
  await producer.send({ data: Buffer.from('small') });
  const found = await receive(consumer, 2);
  assert.ok(found[0].getData().equals(large));
  assert.equal(textOf(found[1]), 'small');
  await Promise.all(found.map((message) => consumer.acknowledge(message)));
  await until(async () => await backlogOf(topic) === 0);
});

test('a message at the limit and one above', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({ topic, subscription: 's' });
  const producer = await client.createProducer({ topic });
  await assert.rejects(producer.send({ data: Buffer.alloc(LIMIT_BYTES + 1) }), /MessageTooBig/);
  await producer.send({ data: Buffer.alloc(LIMIT_BYTES - 1_000) });
  assert.equal((await receive(consumer, 1))[0].getData().length, LIMIT_BYTES - 1_000);
});

test('a batch is received at once', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({
    topic, subscription: 's', batchReceivePolicy: { maxNumMessages: 50, timeoutMs: 10_000 },
  });
  const producer = await client.createProducer({ topic });
  await sendAll(producer, 50);
  assert.deepEqual((await consumer.batchReceive()).map(textOf), texts(0, 50));
});

test('keys go to one of three partitions', async (t) => {
  const topic = topicOf(t);
  await ask('PUT', `${pathOf(topic)}/partitions`, 3);
  assert.equal((await client.getPartitionsForTopic(topic)).length, 3);
  const consumer = await client.subscribe({ topic, subscription: 's', subscriptionType: 'Shared' });
  const producer = await client.createProducer({ topic });
  const sent = [];
  for (let number = 0; number < 60; number += 1) {
    sent.push(producer.send({ data: Buffer.from('m'), partitionKey: `k${number % 9}` }));
  }
  await producer.flush();
  await Promise.all(sent);
  const found = new Map();
  for (const message of await receive(consumer, 60)) {
    const key = message.getPartitionKey();
    found.set(key, (found.get(key) ?? new Set()).add(message.getTopicName()));
  }
  assert.equal(found.size, 9);
  assert.ok([...found.values()].every((topics) => topics.size === 1));
});

test('encrypted messages pass, and only their key reads them', async (t) => {
  const topic = topicOf(t);
  const pair = generateKeyPairSync('rsa', {
    modulusLength: 2_048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  class Keys extends Pulsar.CryptoKeyReader {
    getPublicKey() { return { key: Buffer.from(pair.publicKey), metadata: {} }; }

    getPrivateKey() { return { key: Buffer.from(pair.privateKey), metadata: {} }; }
  }
  const consumer = await client.subscribe({ topic, subscription: 's', cryptoKeyReader: new Keys() });
  const producer = await client.createProducer({
    topic, cryptoKeyReader: new Keys(), encryptionKeys: ['own'],
  });
  await producer.send({ data: Buffer.from('secret') });
  const [message] = await receive(consumer, 1);
  assert.equal(textOf(message), 'secret');
  assert.deepEqual(message.getEncryptionContext().keys.map((key) => key.key), ['own']);
  await consumer.close();
  const other = await client.subscribe({ topic, subscription: 's', cryptoFailureAction: 'CONSUME' });
  const [raw] = await receive(other, 1);
  assert.ok(raw.getEncryptionContext().isDecryptionFailed);
  assert.ok(!raw.getData().includes('secret'));
});

test('delayed messages come when they are due', async (t) => {
  const topic = topicOf(t);
  const shared = await client.subscribe({ topic, subscription: 's', subscriptionType: 'Shared' });
  const exclusive = await client.subscribe({ topic, subscription: 'at-once' });
  const producer = await client.createProducer({ topic });
  const sentMs = Date.now();
  for (const [text, more] of [
    ['after', { deliverAfter: DELAY_MS }], ['at', { deliverAt: sentMs + 2 * DELAY_MS }],
    ['past', { deliverAt: 1 }], ['plain', {}],
  ]) {
    await producer.send({ data: Buffer.from(text), ...more });
  }
  assert.deepEqual((await receive(exclusive, 4)).map(textOf), ['after', 'at', 'past', 'plain']);
  assert.deepEqual((await receive(shared, 2)).map(textOf), ['past', 'plain']);
  for (const [text, delayMs] of [['after', DELAY_MS], ['at', 2 * DELAY_MS]]) {
    assert.equal(textOf((await receive(shared, 1))[0]), text);
    const waitedMs = Date.now() - sentMs;
    assert.ok(waitedMs >= delayMs && waitedMs < delayMs + LATE_MS_MAX, `${text} after ${waitedMs} ms`);
  }
});

test('a namespace may switch delays off', async () => {
  const topic = await inNamespace('no-delays', 'delayedDelivery', { tickTime: 1_000, active: false });
  const consumer = await client.subscribe({ topic, subscription: 's', subscriptionType: 'Shared' });
  const producer = await client.createProducer({ topic });
  await producer.send({ data: Buffer.from('now'), deliverAfter: 3_600_000 });
  assert.deepEqual(await rest(consumer), ['now']);
});

test('clients come back when their topic is unloaded', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({ topic, subscription: 's', subscriptionType: 'Shared' });
  const producer = await client.createProducer({ topic, batchingEnabled: false });
  await sendAll(producer, 4);
  const early = await receive(consumer, 2);
  await Promise.all(early.map((message) => consumer.acknowledge(message)));
  await until(async () => await backlogOf(topic) === 2);
  await ask('PUT', `${pathOf(topic)}/unload`);
  await producer.send({ data: Buffer.from('later') });
  const found = new Set();
  while (!['m2', 'm3', 'later'].every((text) => found.has(text))) {
    const [message] = await receive(consumer, 1);
    await consumer.acknowledge(message);
    found.add(textOf(message));
  }
  await until(async () => await backlogOf(topic) === 0);
});
