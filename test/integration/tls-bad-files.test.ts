// Certificates and keys that cannot be used: the program does not start, and says which file it is and why, and nothing of the secrets.

import assert from 'node:assert/strict';
import { truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { CertificateFolder } from '../support/certificates.ts';
import { Fifo } from '../support/fifo.ts';
import { bootstrapOf, pair, tlsListener } from '../support/tls-config.ts';
import { runWeir } from '../support/weir-process.ts';

const PASSWORD = 'hunter2';
const PASSPHRASE = 'sesame';

test('a start with bad certificates ends with all of them named, and without a word of what they hold', async () => {
  using folder = new CertificateFolder();
  const good = await folder.make('good');
  const other = await folder.make('other');
  const old = await folder.make('old', { days: -1 });
  const locked = await folder.make('locked', { password: PASSPHRASE });
  const bundle = await folder.bundle('bundle', good, PASSPHRASE);
  const junk = path.join(folder.path, 'junk.pem');
  writeFileSync(junk, `Kennwort: ${PASSPHRASE}`);
  const password = { inline_string: PASSWORD };
  const fifo = await Fifo.make(path.join(folder.path, 'pipe.key'));
  const large = path.join(folder.path, 'large.pem');
  writeFileSync(large, '');
  truncateSync(large, 1024 ** 3);
  const bad: readonly (readonly [certificate: object, error: string])[] = [
    [
      { ...pair(good), private_key: { filename: other.keyPath } },
      `"${other.keyPath}" is not the key of the certificate in`,
    ],
    [{ pkcs12: { filename: bundle }, password }, `"${bundle}" cannot be opened with the password given`],
    [{ ...pair(good), certificate_chain: { filename: junk } }, `"${junk}" holds no certificate in PEM`],
    [{ ...pair(good), private_key: { filename: folder.path } }, `"${folder.path}" is a directory, not a file`],
    [{ ...pair(good), private_key: { filename: fifo.path } }, `"${fifo.path}" is not a regular file`],
    [{ ...pair(good), certificate_chain: { filename: '/dev/zero' } }, `"/dev/zero" is not a regular file`],
    [
      { ...pair(good), certificate_chain: { filename: large } },
      `"${large}" has 1073741824 bytes, more than the limit 16777216`,
    ],
    [{ pkcs12: { filename: fifo.path }, password }, `"${fifo.path}" is not a regular file`],
    [{ ...pair(good), ocsp_staple: { filename: fifo.path } }, `ocsp_staple: "${fifo.path}" is not a regular file`],
    [{ ...pair(locked), password }, `"${locked.keyPath}" cannot be decrypted with the password given`],
  ];
  const listeners = [
    ...bad.map(([certificate], index) => tlsListener(`bad${index}`, { common: { tls_certificates: [certificate] } })),
    tlsListener('old', { common: { tls_certificates: [pair(old)] } }),
    tlsListener('odd', { common: { tls_certificates: [pair(good)], tls_params: { cipher_suites: ['ROT13'] } } }),
  ];
  const { code, stdout, stderr } = await runWeir(['--config-yaml', bootstrapOf(listeners)]);
  assert.equal(code, 1);
  for (const [, error] of bad) assert.ok(stderr.includes(error), error);
  assert.match(stderr, /"ROT13" is not a cipher suite that this build knows/);
  assert.match(stderr, /old\.pem" expired on /);
  const keys = [good, other, old, locked].map(({ key }) => key.split('\n')[1]!);
  for (const secret of [PASSWORD, PASSPHRASE, 'Kennwort', ...keys]) {
    assert.ok(!(stdout + stderr).includes(secret), 'a secret in the output');
  }
});
