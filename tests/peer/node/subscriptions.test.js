// Subscriptions: their types, acknowledgements, what comes again, seeks, readers, patterns.
'use strict';

const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');
const {
  Pulsar, WAIT_MS, ask, assertSilent, backlogOf, batching, connect, pathOf, receive, rest, sendAll, textOf,
  texts, topicOf, until,
} = require('./support');

let client;

before(() => { client = connect(); });
after(() => client.close());

test('Exclusive means one', async (t) => {
  const topic = topicOf(t);
  const first = await client.subscribe({ topic, subscription: 's' });
  for (const subscriptionType of ['Exclusive', 'Shared']) {
    await assert.rejects(client.subscribe({ topic, subscription: 's', subscriptionType }), /ConsumerBusy/);
  }
  await sendAll(await client.createProducer({ topic }), 3);
  assert.deepEqual(await rest(first), texts(0, 3));
  await first.close();
  assert.deepEqual(await rest(await client.subscribe({ topic, subscription: 's' })), texts(0, 3));
});

test('Shared gives each message to one', async (t) => {
  const topic = topicOf(t);
  const consumers = [];
  for (let number = 0; number < 3; number += 1) {
    consumers.push(await client.subscribe({
      topic, subscription: 's', subscriptionType: 'Shared', receiverQueueSize: 20,
    }));
  }
  await sendAll(await client.createProducer({ topic, batchingEnabled: false }), 90);
  await consumers.shift().close(); // what it holds goes to the others
  const found = [];
  await until(async () => {
    for (const consumer of consumers) {
      const message = await consumer.receive(20).catch(() => null);
      if (message) {
        found.push(textOf(message));
        await consumer.acknowledge(message);
      }
    }
    return found.length === 90;
  });
  assert.deepEqual(found.sort(), texts(0, 90).sort());
});

test('Failover goes to the next name', async (t) => {
  const topic = topicOf(t);
  await ask('PUT', `${pathOf(topic)}/partitions`, 1);
  const partition = `${topic}-partition-0`;
  const consumers = new Map();
  for (const consumerName of ['b', 'a']) {
    consumers.set(consumerName, await client.subscribe({
      topic: partition, subscription: 's', subscriptionType: 'Failover', consumerName,
    }));
  }
  const producer = await client.createProducer({ topic });
  for (const name of ['a', 'b']) {
    await until(async () => {
      const stats = await ask('GET', `${pathOf(partition)}/stats`);
      return stats.subscriptions.s.activeConsumerName === name;
    });
    await sendAll(producer, 3);
    const found = await receive(consumers.get(name), 3);
    assert.deepEqual(found.map(textOf), texts(0, 3));
    await consumers.get(name).acknowledgeCumulative(found[2]);
    await until(async () => await backlogOf(partition) === 0);
    await consumers.get(name).close();
  }
});

for (const subscriptionType of ['Shared', 'Exclusive', 'Failover']) {
  test(`${subscriptionType}: messages of a batch are acknowledged singly`, async (t) => {
    const options = {
      topic: topicOf(t), subscription: 's', subscriptionType, batchIndexAckEnabled: true,
    };
    const consumer = await client.subscribe(options);
    await sendAll(await batching(client, options.topic, 5), 5);
    const messages = await receive(consumer, 5);
    await consumer.acknowledge(messages[1]);
    await consumer.acknowledge(messages[3]);
    await consumer.close();
    assert.deepEqual(await rest(await client.subscribe(options)), ['m0', 'm2', 'm4']);
  });
}

test('cumulatively within a batch', async (t) => {
  const options = { topic: topicOf(t), subscription: 's', batchIndexAckEnabled: true };
  const consumer = await client.subscribe(options);
  await sendAll(await batching(client, options.topic, 5), 5);
  await consumer.acknowledgeCumulative((await receive(consumer, 5))[2]);
  await consumer.close();
  assert.deepEqual(await rest(await client.subscribe(options)), texts(3, 5));
});

test('a negative acknowledgement brings what is left of a batch', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({
    topic,
    subscription: 's',
    subscriptionType: 'Shared',
    batchIndexAckEnabled: true,
    nAckRedeliverTimeoutMs: 50,
  });
  await sendAll(await batching(client, topic, 5), 5);
  const messages = await receive(consumer, 5);
  await Promise.all(messages.slice(0, 3).map((message) => consumer.acknowledge(message)));
  let left = messages.slice(3);
  for (const count of [1, 2]) {
    left.forEach((message) => consumer.negativeAcknowledge(message));
    left = await receive(consumer, 2);
    assert.deepEqual(left.map(textOf), texts(3, 5));
    assert.deepEqual(left.map((message) => message.getRedeliveryCount()), [count, count]);
  }
});

test('a dead message goes to the first subscription of its topic', async (t) => {
  const topic = topicOf(t);
  const deadLetterTopic = `${topic}-dead`;
  const consumer = await client.subscribe({
    topic,
    subscription: 's',
    subscriptionType: 'Shared',
    nAckRedeliverTimeoutMs: 50,
    deadLetterPolicy: { deadLetterTopic, maxRedeliverCount: 2, initialSubscriptionName: 'letters' },
  });
  await sendAll(await client.createProducer({ topic }), 1);
  for (let delivery = 0; delivery < 3; delivery += 1) {
    consumer.negativeAcknowledge((await receive(consumer, 1))[0]);
  }
  await until(async () => await backlogOf(topic) === 0);
  const letters = await client.subscribe({
    topic: deadLetterTopic, subscription: 'letters', subscriptionType: 'Shared',
  });
  assert.deepEqual(await rest(letters), ['m0']);
});

test('a consumer seeks by id and by time', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({ topic, subscription: 's' });
  const producer = await client.createProducer({ topic });
  const ids = await sendAll(producer, 5);
  await new Promise((resolve) => { setTimeout(resolve, 20); });
  const middleMs = Date.now();
  await new Promise((resolve) => { setTimeout(resolve, 20); });
  await producer.send({ data: Buffer.from('later') });
  await receive(consumer, 6);
  await consumer.seek(ids[3]);
  assert.deepEqual(await rest(consumer), ['m4', 'later']);
  await consumer.seekTimestamp(middleMs);
  assert.deepEqual(await rest(consumer), ['later']);
  await consumer.seek(Pulsar.MessageId.earliest());
  assert.equal((await rest(consumer)).length, 6);
  await consumer.seek(Pulsar.MessageId.latest());
  await assertSilent(consumer);
});

for (const batchingEnabled of [false, true]) {
  test(`readers begin where they are told, ${batchingEnabled}`, async (t) => {
    const topic = topicOf(t);
    const ids = await sendAll(
      await client.createProducer({ topic, batchingEnabled, batchingMaxMessages: 4 }), 10,
    );
    for (const [startMessageId, expected] of [
      [Pulsar.MessageId.earliest(), texts(0, 10)], [ids[5], texts(6, 10)], [ids[9], []],
      [Pulsar.MessageId.latest(), []],
    ]) {
      const reader = await client.createReader({ topic, startMessageId });
      const found = [];
      while (reader.hasNext()) {
        found.push(textOf(await reader.readNext(WAIT_MS)));
      }
      assert.deepEqual(found, expected);
      await reader.close();
    }
  });
}

test('several topics in one subscription', async (t) => {
  const topics = ['one', 'two'].map((name) => `${topicOf(t)}-${name}`);
  const consumer = await client.subscribe({ topics, subscription: 's', subscriptionType: 'Shared' });
  for (const topic of topics) {
    await (await client.createProducer({ topic })).send({ data: Buffer.from(topic) });
  }
  assert.deepEqual((await rest(consumer)).sort(), topics);
});

test('topics by a pattern', async (t) => {
  const base = topicOf(t);
  for (const name of ['a1', 'a2', 'b']) {
    await (await client.createProducer({ topic: `${base}-${name}` })).send({ data: Buffer.from(name) });
  }
  const consumer = await client.subscribe({
    topicsPattern: `${base}-a.*`, subscription: 's', subscriptionInitialPosition: 'Earliest',
  });
  assert.deepEqual((await rest(consumer)).sort(), ['a1', 'a2']);
});

test('unsubscribing forgets', async (t) => {
  const topic = topicOf(t);
  const consumer = await client.subscribe({ topic, subscription: 's' });
  const producer = await client.createProducer({ topic });
  await sendAll(producer, 3);
  await consumer.unsubscribe();
  const again = await client.subscribe({ topic, subscription: 's' });
  await producer.send({ data: Buffer.from('new') });
  assert.deepEqual(await rest(again), ['new']);
});
