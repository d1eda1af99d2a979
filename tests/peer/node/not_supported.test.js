// What the broker does not have fails at once, and the connection serves on.
'use strict';

const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');
const { connect, rest, sendAll, texts, topicOf } = require('./support');

let client;

before(() => { client = connect(); });
after(() => client.close());

test('Key_Shared', async (t) => {
  const options = { topic: topicOf(t), subscription: 's' };
  await assert.rejects(
    client.subscribe({ ...options, subscriptionType: 'KeyShared' }), /NotAllowed/,
  );
  await client.subscribe({ ...options, subscriptionType: 'Shared' });
});

test('non-persistent topics', async () => {
  const topic = 'non-persistent://public/default/t';
  await assert.rejects(client.createProducer({ topic }), /NotAllowed/);
  await assert.rejects(client.subscribe({ topic, subscription: 's' }), /NotAllowed/);
});

test('replicated subscriptions are ordinary ones', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({
    topic, subscription: 's', replicateSubscriptionState: true,
  });
  await sendAll(await client.createProducer({ topic }), 3);
  assert.deepEqual(await rest(consumer), texts(0, 3));
});

test('what was never compacted is read whole', async (t) => {
  const topic = topicOf(t);
  const producer = await client.createProducer({ topic });
  for (const text of texts(0, 3)) {
    await producer.send({ data: Buffer.from(text), partitionKey: 'one' });
  }
  const consumer = await client.subscribe({
    topic, subscription: 's', subscriptionInitialPosition: 'Earliest', readCompacted: true,
  });
  assert.deepEqual(await rest(consumer), texts(0, 3));
});
