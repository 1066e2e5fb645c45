// Certificates, keys, authorities and secrets whose files change under a listener that serves: handshakes go on, old ones are
// shown until new ones are whole, and what cannot be used changes nothing.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ConnectionOptions } from 'node:tls';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { Fifo } from '../support/fifo.ts';
import { getOverTls, isResumed, newSession, shownSubject } from '../support/tls-client.ts';
import { bootstrapOf, pair, tlsListener } from '../support/tls-config.ts';
import { copyPair, type PairOfFiles, pairIn, replaceFile, secretFrom, secretResponse } from '../support/tls-files.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

let folder: CertificateFolder;
let ca: TestCertificate;
let otherCa: TestCertificate;
let weir: WeirProcess;
let ports: Map<string, number>;

const client: ConnectionOptions = { rejectUnauthorized: false };

function place(...names: string[]): string {
  return path.join(folder.path, ...names);
}

/** The paths of a pair in a folder of its own. */
function inFolder(name: string): PairOfFiles {
  return pairIn(place(name));
}

/** Both workers show it: the kernel spreads connections over them. */
async function untilShown(listener: string, name: string): Promise<void> {
  const port = ports.get(listener)!;
  const shown = async (): Promise<string> => {
    const subjects = await Promise.all(Array.from({ length: 8 }, () => shownSubject(port, client)));
    return [...new Set(subjects)].join(', ');
  };
  await untilEqual(`CN=${name}`, shown, `the certificate of ${listener}`);
}

before(async () => {
  folder = new CertificateFolder();
  const make = (name: string): Promise<TestCertificate> => folder.make(name, { altNames: 'DNS:a.example' });
  ca = await folder.make('ca', { isAuthority: true });
  otherCa = await folder.make('other-ca', { isAuthority: true });
  for (const name of ['one', 'two', 'three']) await make(name);
  for (const name of ['written', 'neighbour', 'broken', 'stuck', 'named']) copyPair(inFolder(name), certificate('one'));
  // As Kubernetes has it: files are links through a link to a folder.
  copyPair(inFolder('mounted/..1'), certificate('one'));
  symlinkSync('..1', place('mounted', '..data'));
  for (const file of ['tls.crt', 'tls.key']) symlinkSync(`..data/${file}`, place('mounted', file));
  copyPair(inFolder('release-1'), certificate('one'));
  symlinkSync('release-1', place('current'));
  copyFileSync(ca.certificatePath, place('trusted.pem'));
  writeFileSync(place('key-1'), randomBytes(80));
  copyFileSync(place('key-1'), place('newest-key'));
  copyFileSync(place('key-1'), place('older-key'));
  writeFileSync(place('secret.json'), secretResponse({ name: 'server', tls_certificate: pair(certificate('one')) }));
  writeFileSync(place('naming.json'), secretResponse({ name: 'named', tls_certificate: pair(inFolder('named')) }));
  const trust = { trusted_ca: { filename: place('trust.pem') } };
  copyFileSync(ca.certificatePath, place('trust.pem'));
  writeFileSync(place('trust.json'), secretResponse({ name: 'trust', validation_context: trust }));
  const of = (name: string): object => ({ tls_certificates: [pair(inFolder(name))] });
  const trusted = { validation_context: { trusted_ca: { filename: place('trusted.pem') } } };
  const listeners = [
    tlsListener('written', { common: of('written') }),
    tlsListener('neighbour', { common: of('neighbour') }),
    tlsListener('broken', { common: of('broken') }),
    tlsListener('stuck', { common: of('stuck') }),
    tlsListener('mounted', { common: of('mounted') }),
    tlsListener('current', { common: of('current') }),
    tlsListener('mutual', {
      common: { tls_certificates: [pair(certificate('one'))], ...trusted },
      context: { require_client_certificate: true },
    }),
    tlsListener('combined', {
      common: {
        tls_certificates: [pair(certificate('one'))],
        combined_validation_context: {
          default_validation_context: {
            match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'carol.example' } }],
          },
          validation_context_sds_secret_config: secretFrom('trust', place('trust.json')),
        },
      },
      context: { require_client_certificate: true },
    }),
    tlsListener('tickets', {
      common: { tls_certificates: [pair(certificate('one'))] },
      context: { session_ticket_keys: { keys: [{ filename: place('newest-key') }, { filename: place('older-key') }] } },
    }),
    tlsListener('secret', {
      common: { tls_certificate_sds_secret_configs: [secretFrom('server', place('secret.json'))] },
    }),
    tlsListener('naming', {
      common: { tls_certificate_sds_secret_configs: [secretFrom('named', place('naming.json'))] },
    }),
  ];
  weir = await startWeir({ configYaml: bootstrapOf(listeners), args: ['--concurrency', '2'] });
  ports = new Map([...(await weir.listeners())].map(([name, { port }]) => [name, port]));
});

after(async () => {
  await weir?.stop();
  folder[Symbol.dispose]();
});

function certificate(name: string): PairOfFiles {
  return { certificatePath: place(`${name}.pem`), keyPath: place(`${name}.key`) };
}

describe('certificates in files that change', () => {
  it('are shown from then on, without a failed handshake, however they are written', async () => {
    const port = ports.get('written')!;
    const isOver = { value: false };
    let answers = 0;
    const clients = Array.from({ length: 6 }, async () => {
      while (!isOver.value) {
        assert.match(await getOverTls(port, client), /200 OK/);
        answers += 1;
      }
    });
    const to = inFolder('written');
    // The key alone fits no certificate: the old pair goes on.
    writeFileSync(to.keyPath, readFileSync(certificate('two').keyPath));
    writeFileSync(to.certificatePath, readFileSync(certificate('two').certificatePath));
    await untilShown('written', 'two');
    replaceFile(to.certificatePath, readFileSync(certificate('three').certificatePath));
    replaceFile(to.keyPath, readFileSync(certificate('three').keyPath));
    await untilShown('written', 'three');
    isOver.value = true;
    await Promise.all(clients);
    assert.ok(answers > 0);
    assert.equal(await weir.stat('listener.written.ssl.connection_error'), 0);
    assert.equal(await shownSubject(ports.get('neighbour')!, client), 'CN=one');
  });

  it('are found behind a link that leads elsewhere now', async () => {
    copyPair(inFolder('mounted/..2'), certificate('two'));
    symlinkSync('..2', place('mounted', '..new'));
    renameSync(place('mounted', '..new'), place('mounted', '..data'));
    await untilShown('mounted', 'two');
    copyPair(inFolder('release-2'), certificate('two'));
    symlinkSync('release-2', place('next'));
    renameSync(place('next'), place('current'));
    await untilShown('current', 'two');
    // What lies behind the new link is watched in turn.
    copyPair(inFolder('release-2'), certificate('three'));
    await untilShown('current', 'three');
  });

  it('are found when their folder is another one', async () => {
    copyPair(inFolder('neighbour-2'), certificate('two'));
    renameSync(place('neighbour'), place('neighbour-1'));
    renameSync(place('neighbour-2'), place('neighbour'));
    await untilShown('neighbour', 'two');
    copyPair(inFolder('neighbour'), certificate('three'));
    await untilShown('neighbour', 'three');
  });

  it('stay as they were while the new ones cannot be used', async () => {
    const { certificatePath, keyPath } = inFolder('broken');
    const failures = 'listener.broken.server_ssl_socket_factory.ssl_context_update_failed';
    replaceFile(keyPath, readFileSync(certificate('two').keyPath));
    await weir.untilStat(failures, 1);
    assert.equal(await shownSubject(ports.get('broken')!, client), 'CN=one');
    const line = `listener broken: TLS goes on with what it had: .*${keyPath}" is not the key of the certificate in "${certificatePath}"`;
    assert.match(weir.output.stderr, new RegExp(line));
    replaceFile(certificatePath, 'nothing');
    await weir.untilStat(failures, 2);
    copyPair(inFolder('broken'), certificate('three'));
    await untilShown('broken', 'three');
    const { certificates } = JSON.parse(await weir.admin('/certs'));
    assert.equal(certificates[2].cert_chain[0].path, certificatePath);
    const { serial_number: serial } = certificates[2].cert_chain[0];
    const written = await folder.openssl(['x509', '-in', certificate('three').certificatePath, '-serial', '-noout']);
    assert.equal(`serial=${serial.toUpperCase()}`, written.trim());
  });
});

describe('what is moved over a certificate and is no file of that kind', () => {
  it('holds nobody up, and is said with its name', async () => {
    const { certificatePath, keyPath } = inFolder('stuck');
    const failures = 'listener.stuck.server_ssl_socket_factory.ssl_context_update_failed';
    // Nobody will ever write to it.
    const fifo = await Fifo.make(`${keyPath}.new`);
    renameSync(fifo.path, keyPath);
    await weir.untilStat(failures, 1);
    const untilSaid = (text: string): Promise<void> => eventually(() => weir.output.stderr.includes(text), text);
    await untilSaid(`"${keyPath}" is not a regular file`);
    replaceFile(`${certificatePath}.large`, '');
    truncateSync(`${certificatePath}.large`, 1024 ** 3);
    renameSync(`${certificatePath}.large`, certificatePath);
    await weir.untilStat(failures, 2);
    await untilSaid(`"${certificatePath}" has 1073741824 bytes, more than the limit 16777216`);
    assert.equal(await shownSubject(ports.get('stuck')!, client), 'CN=one');
    copyPair(inFolder('stuck-2'), certificate('three'));
    renameSync(inFolder('stuck-2').certificatePath, certificatePath);
    renameSync(inFolder('stuck-2').keyPath, keyPath);
    await untilShown('stuck', 'three');
  });
});

describe('authorities in a file that changes', () => {
  it('judge clients from then on, also those with a session of before', async () => {
    const port = ports.get('mutual')!;
    const alice = await folder.make('alice', { issuer: ca });
    const bob = await folder.make('bob', { issuer: otherCa });
    const asAlice = { ...client, cert: alice.certificate, key: alice.key };
    const asBob = { ...client, cert: bob.certificate, key: bob.key };
    assert.match(await getOverTls(port, asAlice), /200 OK/);
    await assert.rejects(getOverTls(port, asBob));
    const session = await newSession(port, asAlice);
    replaceFile(place('trusted.pem'), otherCa.certificate);
    await weir.untilStat('listener.mutual.server_ssl_socket_factory.ssl_context_update_by_file', 1);
    assert.match(await getOverTls(port, asBob), /200 OK/);
    await assert.rejects(getOverTls(port, { ...asAlice, session }));
    await weir.untilStat('listener.mutual.ssl.session_reused', 0);
  });
});

describe('authorities that a secret puts over the names of a context', () => {
  it('judge clients together with those, and change alone', async () => {
    const port = ports.get('combined')!;
    const as = async (name: string, issuer: TestCertificate): Promise<ConnectionOptions> => {
      const { certificate: cert, key } = await folder.make(name, { issuer, altNames: `DNS:${name}.example` });
      return { ...client, cert, key };
    };
    const [carol, dora] = [await as('carol', ca), await as('dora', ca)];
    assert.match(await getOverTls(port, carol), /200 OK/);
    await assert.rejects(getOverTls(port, dora));
    await weir.untilStat('listener.combined.ssl.fail_verify_san', 1);
    replaceFile(place('trust.pem'), otherCa.certificate);
    await weir.untilStat('listener.combined.server_ssl_socket_factory.ssl_context_update_by_sds', 2);
    await assert.rejects(getOverTls(port, carol));
    assert.match(await getOverTls(port, await as('carol', otherCa)), /200 OK/);
  });
});

describe('ticket keys in files', () => {
  it('take the tickets of older keys, and give new ones with the newest', async () => {
    const port = ports.get('tickets')!;
    const first = await newSession(port, client);
    const updates = 'listener.tickets.server_ssl_socket_factory.ssl_context_update_by_file';
    replaceFile(place('newest-key'), randomBytes(80));
    await weir.untilStat(updates, 1);
    assert.equal(await isResumed(port, first, client), true);
    const second = await newSession(port, { ...client, session: first });
    replaceFile(place('older-key'), randomBytes(80));
    await weir.untilStat(updates, 2);
    assert.equal(await isResumed(port, first, client), false);
    assert.equal(await isResumed(port, second, client), true);
  });
});

describe('secrets in files', () => {
  it('are taken over when another file is moved there, and counted', async () => {
    const file = place('secret.json');
    assert.equal(await shownSubject(ports.get('secret')!, client), 'CN=one');
    assert.equal(await weir.stat('sds.server.update_success'), 1);
    replaceFile(file, secretResponse({ name: 'server', tls_certificate: pair(certificate('two')) }));
    await untilShown('secret', 'two');
    await weir.untilStat('sds.server.update_success', 2);
    await weir.untilStat('listener.secret.server_ssl_socket_factory.ssl_context_update_by_sds', 2);
    replaceFile(file, '{');
    await weir.untilStat('sds.server.update_failure', 1);
    replaceFile(
      file,
      secretResponse({ name: 'server', tls_certificate: pair({ ...certificate('two'), keyPath: place('none') }) }),
    );
    await weir.untilStat('sds.server.update_rejected', 1);
    assert.equal(await shownSubject(ports.get('secret')!, client), 'CN=two');
    // What was missing is waited for.
    copyFileSync(certificate('two').keyPath, place('none'));
    replaceFile(file, secretResponse({ name: 'server', tls_certificate: pair(certificate('three')) }));
    await untilShown('secret', 'three');
    assert.equal(await weir.stat('sds.server.key_rotation_failed'), 0);
  });

  it('tell of keys that cannot be used', async () => {
    const { keyPath } = inFolder('named');
    replaceFile(keyPath, readFileSync(certificate('two').keyPath));
    await weir.untilStat('sds.named.key_rotation_failed', 1);
    assert.equal(await shownSubject(ports.get('naming')!, client), 'CN=one');
    copyPair(inFolder('named'), certificate('two'));
    await untilShown('naming', 'two');
    assert.equal(await weir.stat('sds.named.update_attempt'), 1);
  });
});
