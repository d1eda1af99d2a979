// What the tests share: a client of the broker that the environment names, and its messages.
'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const Pulsar = require('pulsar-client');

/** How long a message may take that has to come. */
const WAIT_MS = 15_000;
/** How long the tests listen for a message that must not come. */
const SILENCE_MS = 500;
/** Of the client's own log, only errors. */
const LOG_LEVEL = Pulsar.LogLevel.ERROR;

const SERVICE_URL = process.env.HEADGATE_SERVICE_URL;
const ADMIN_URL = process.env.HEADGATE_ADMIN_URL;

Pulsar.Client.setLogHandler(() => {});

function connect(more = {}) {
  return new Pulsar.Client({
    serviceUrl: SERVICE_URL, operationTimeoutSeconds: 15, logLevel: LOG_LEVEL, ...more,
  });
}

/** A topic of the test's own. */
function topicOf(test) {
  const file = path.basename(process.argv[1], '.test.js');
  return `persistent://public/default/node-${file}-${test.name.replace(/\W+/g, '-')}`;
}

/** The body of the admin API's answer, which must not be a refusal. */
async function ask(method, pathOf, body) {
  const reply = await fetch(`${ADMIN_URL}/admin/v2/${pathOf}`, {
    method,
    body: body === undefined ? undefined : JSON.stringify(body),
    headers: { 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(WAIT_MS),
  });
  const text = await reply.text();
  assert.ok(reply.ok, `${method} ${pathOf}: ${reply.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

/** A topic's path in the admin API. */
function pathOf(topic) {
  return topic.replace('://', '/');
}

async function backlogOf(topic, subscription = 's') {
  const stats = await ask('GET', `${pathOf(topic)}/stats`);
  return stats.subscriptions[subscription].msgBacklog;
}

/** A topic in a namespace of its own with a policy. */
async function inNamespace(name, policy, value) {
  await ask('PUT', `namespaces/public/node-${name}`, {});
  await ask('POST', `namespaces/public/node-${name}/${policy}`, value);
  return `persistent://public/node-${name}/t`;
}

/** Send m0, m1 and so on, and return their ids. */
async function sendAll(producer, count) {
  const sent = texts(0, count).map((text) => producer.send({ data: Buffer.from(text) }));
  await producer.flush();
  return Promise.all(sent);
}

/** What sendAll sends, from a number on. */
function texts(begin, end) {
  return Array.from({ length: end - begin }, (_, number) => `m${begin + number}`);
}

function textOf(message) {
  return message.getData().toString();
}

/** The next messages, which have to come. */
async function receive(consumer, count) {
  const found = [];
  while (found.length < count) {
    found.push(await consumer.receive(WAIT_MS));
  }
  return found;
}

/** What comes until nothing comes for a while; the first has to come. */
async function rest(consumer) {
  const found = [textOf(await consumer.receive(WAIT_MS))];
  for (;;) {
    try {
      found.push(textOf(await consumer.receive(SILENCE_MS)));
    } catch (error) {
      assert.match(error.message, /TimeOut/);
      return found;
    }
  }
}

async function assertSilent(consumer) {
  await assert.rejects(consumer.receive(SILENCE_MS), /TimeOut/);
}

async function until(condition) {
  const end = Date.now() + WAIT_MS;
  while (!(await condition())) {
    assert.ok(Date.now() < end, 'it never came to be');
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

/** A producer of batches of so many messages. */
function batching(client, topic, count) {
  return client.createProducer({
    topic, batchingEnabled: true, batchingMaxMessages: count, batchingMaxPublishDelayMs: WAIT_MS,
  });
}

module.exports = {
  Pulsar,
  SERVICE_URL,
  WAIT_MS,
  ask,
  assertSilent,
  backlogOf,
  batching,
  connect,
  inNamespace,
  pathOf,
  receive,
  rest,
  sendAll,
  textOf,
  texts,
  topicOf,
  until,
};
