// TLS and authentication: the environment names the broker, the authority to trust and the secrets.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('node:test');
const { Pulsar, connect, rest, sendAll, texts } = require('../support');

const {
  HEADGATE_AUTHORITY: authority, HEADGATE_CERTIFICATE: certificatePath, HEADGATE_KEY: privateKeyPath,
  HEADGATE_USER: username, HEADGATE_PASSWORD: password,
} = process.env;
const TOKEN = fs.readFileSync(process.env.HEADGATE_TOKEN, 'utf8').trim();
const TOPIC = 'persistent://public/default/node-secured';

function secured(authentication) {
  return connect({
    tlsTrustCertsFilePath: authority,
    tlsValidateHostname: true,
    operationTimeoutSeconds: 5,
    authentication,
  });
}

for (const [kind, authentication] of [
  ['a token', () => new Pulsar.AuthenticationToken({ token: TOKEN })],
  ['a supplier of tokens', () => new Pulsar.AuthenticationToken({ token: async () => TOKEN })],
  ['a certificate', () => new Pulsar.AuthenticationTls({ certificatePath, privateKeyPath })],
  ['a password', () => new Pulsar.AuthenticationBasic({ username, password })],
]) {
  test(`messages pass over TLS with ${kind}`, async () => {
    const client = secured(authentication());
    const consumer = await client.subscribe({ topic: TOPIC, subscription: kind });
    await sendAll(await client.createProducer({ topic: TOPIC }), 3);
    assert.deepEqual(await rest(consumer), texts(0, 3));
    await client.close();
  });
}

test('another token is refused', async () => {
  const client = secured(new Pulsar.AuthenticationToken({ token: `${TOKEN}x` }));
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
