// TLS and tokens: the environment names the broker, the authority to trust and a file with a token.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('node:test');
const { Pulsar, connect, rest, sendAll, texts } = require('../support');

const tlsTrustCertsFilePath = process.env.HEADGATE_TRUST_FILE;
const TOKEN = fs.readFileSync(process.env.HEADGATE_TOKEN_FILE, 'utf8').trim();
const TOPIC = 'persistent://public/default/node-secured';

function secured(token) {
  return connect({
    tlsTrustCertsFilePath,
    tlsValidateHostname: true,
    operationTimeoutSeconds: 5,
    authentication: new Pulsar.AuthenticationToken({ token }),
  });
}

for (const [kind, token] of [['a token', TOKEN], ['a supplier of tokens', async () => TOKEN]]) {
  test(`messages pass over TLS with ${kind}`, async () => {
    const client = secured(token);
    const consumer = await client.subscribe({ topic: TOPIC, subscription: kind });
    await sendAll(await client.createProducer({ topic: TOPIC }), 3);
    assert.deepEqual(await rest(consumer), texts(0, 3));
    await client.close();
  });
}

test('another token is refused', async () => {
  const client = secured(`${TOKEN}x`);
  await assert.rejects(client.createProducer({ topic: TOPIC }), /Failed to create producer/);
  await client.close();
});

test('a broker with an unknown authority is not trusted', async () => {
  const client = connect({
    operationTimeoutSeconds: 5, authentication: new Pulsar.AuthenticationToken({ token: TOKEN }),
  });
  await assert.rejects(client.createProducer({ topic: TOPIC }), /Failed to create producer/);
  await client.close();
});
