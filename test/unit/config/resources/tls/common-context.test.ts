import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { protoSchema } from '../../../../../src/config/proto/root.ts';
import { decodeMessage } from '../../../../../src/config/proto/wire.ts';
import { ClusterNames } from '../../../../../src/config/resources/conversion.ts';
import type { CommonTlsContext, Secret } from '../../../../../src/config/resources/messages.ts';
import { convertCommonContext } from '../../../../../src/config/resources/tls/common-context.ts';
import { staticSecrets } from '../../../../../src/config/resources/tls/secrets.ts';
import type { TlsSettings } from '../../../../../src/snapshot/index.ts';
import { asNobody } from '../../../../support/as-nobody.ts';
import { CertificateFolder, type TestCertificate } from '../../../../support/certificates.ts';

const TLS = 'proxy.extensions.transport_sockets.tls.v3';
let folder: CertificateFolder;
let ec: TestCertificate;
let rsa: TestCertificate;
let locked: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  ec = await folder.make('ec', { altNames: 'DNS:a.example,DNS:*.B.example' });
  rsa = await folder.make('rsa', { key: 'rsa' });
  locked = await folder.make('locked', { password: 'sesame' });
});
after(() => folder[Symbol.dispose]());

interface Converted {
  readonly settings: TlsSettings;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

function messageOf<Message>(type: string, fields: object): Message {
  const reflected = protoSchema().messageType(`${TLS}.${type}`);
  return decodeMessage(reflected, reflected.encode(reflected.fromObject(fields)).finish()) as Message;
}

/** @param discovered secrets that have come by discovery. */
function convert(
  fields: object,
  secrets: readonly object[] = [],
  environment = {},
  discovered: readonly Secret[] = [],
): Converted {
  const errors: string[] = [];
  const warnings: string[] = [];
  const faults = {
    error: (at: string, text: string) => void errors.push(`${at}: ${text}`),
    warning: (at: string, text: string) => void warnings.push(`${at}: ${text}`),
  };
  const found = staticSecrets(
    secrets.map((secret) => messageOf<Secret>('Secret', secret)),
    'secrets',
    faults,
  );
  const discoveredSecrets = (name: string) => discovered.find((secret) => secret.name === name);
  const conversion = { faults, clusters: new ClusterNames([]), secrets: found, environment, discoveredSecrets };
  const settings = convertCommonContext(messageOf<CommonTlsContext>('CommonTlsContext', fields), 'tls', conversion);
  return { settings, errors, warnings };
}

function file(path: string): object {
  return { filename: path };
}

function pair({ certificatePath, keyPath }: TestCertificate): object {
  return { certificate_chain: file(certificatePath), private_key: file(keyPath) };
}

describe('certificates of a TLS context', () => {
  it('come from files, inline or from the environment, of several types side by side', () => {
    const inline = {
      certificate_chain: { inline_string: rsa.certificate },
      private_key: { environment_variable: 'KEY' },
    };
    const { settings, errors, warnings } = convert({ tls_certificates: [pair(ec), inline] }, [], { KEY: rsa.key });
    assert.deepEqual([errors, warnings], [[], []]);
    const [first, second] = settings.certificates;
    assert.deepEqual([first!.keyType, second!.keyType], ['ec', 'rsa']);
    assert.deepEqual(first!.serverNames, ['a.example', '*.b.example']);
    assert.deepEqual(second!.serverNames, ['rsa']);
    assert.deepEqual(first!.sources.chain, { kind: 'file', path: ec.certificatePath });
    assert.equal(new X509Certificate(second!.leaf).subject, 'CN=rsa');
  });

  it('take keys that a password protects, also in PKCS#12 bundles', async () => {
    const bundle = await folder.bundle('bundle', ec, 'open');
    const password = (text: string) => ({ password: { inline_string: text } });
    const { settings, errors } = convert({
      tls_certificates: [
        { ...pair(locked), ...password('sesame\n') },
        { pkcs12: file(bundle), ...password('open') },
      ],
    });
    assert.deepEqual(errors, []);
    assert.deepEqual(
      settings.certificates.map(({ identity }) => identity.kind),
      ['pem', 'pkcs12'],
    );
    assert.equal(settings.certificates[1]!.serverNames[0], 'a.example');
  });

  it('are refused with the field, the file and the reason, and without a word of the secret', async () => {
    const bundle = await folder.bundle('bundle', ec, 'open');
    const junk = join(folder.path, 'junk.pem');
    writeFileSync(junk, 'Kennwort: sesame');
    const password = { inline_string: 'hunter2' };
    const cases: readonly { readonly name: string; readonly certificate: object; readonly error: string }[] = [
      {
        name: 'key of another certificate',
        certificate: { ...pair(ec), private_key: file(rsa.keyPath) },
        error: `.private_key: "${rsa.keyPath}" is not the key of the certificate in "${ec.certificatePath}"`,
      },
      {
        name: 'no key',
        certificate: { certificate_chain: file(ec.certificatePath) },
        error: ': certificate_chain needs private_key',
      },
      { name: 'nothing', certificate: {}, error: ': needs certificate_chain and private_key, or pkcs12' },
      {
        name: 'certificate that is not PEM',
        certificate: { ...pair(ec), certificate_chain: file(junk) },
        error: `.certificate_chain: "${junk}" holds no certificate in PEM`,
      },
      {
        name: 'key that is not PEM',
        certificate: { ...pair(ec), private_key: file(junk) },
        error: `.private_key: "${junk}" holds no private key in PEM`,
      },
      {
        name: 'missing file',
        certificate: { ...pair(ec), private_key: file('/nowhere/a.key') },
        error: `.private_key: "/nowhere/a.key" cannot be read: ENOENT: no such file or directory, open '/nowhere/a.key'`,
      },
      {
        name: 'key that cannot be read',
        certificate: { ...pair(ec), private_key: file(folder.path) },
        error: `.private_key: "${folder.path}" is a directory, not a file`,
      },
      {
        name: 'no password',
        certificate: pair(locked),
        error: `.private_key: "${locked.keyPath}" is encrypted, and no password is given`,
      },
      {
        name: 'wrong password',
        certificate: { ...pair(locked), password },
        error: `.private_key: "${locked.keyPath}" cannot be decrypted with the password given`,
      },
      {
        name: 'wrong password of a bundle',
        certificate: { pkcs12: file(bundle), password },
        error: `.pkcs12: "${bundle}" cannot be opened with the password given`,
      },
      {
        name: 'bundle that is none',
        certificate: { pkcs12: file(junk), password },
        error: `.pkcs12: "${junk}" is no PKCS#12 bundle with a certificate and its key`,
      },
    ];
    for (const { name, certificate, error } of cases) {
      const { errors } = convert({ tls_certificates: [certificate] });
      assert.deepEqual(errors, [`tls.tls_certificates[0]${error}`], name);
      assert.doesNotMatch(errors.join(), /sesame|hunter2|Kennwort/, name);
    }
  });

  it('are warned of when they have expired', async () => {
    const old = await folder.make('old', { days: -1 });
    const { warnings, errors } = convert({ tls_certificates: [pair(old)] });
    assert.deepEqual(errors, []);
    assert.match(warnings.join(), /^tls\.tls_certificates\[0\]\.certificate_chain: ".*old\.pem" expired on \d{4}-/);
  });

  it('are found among the secrets of the bootstrap, and those that have come by discovery', () => {
    const sds_config = { path_config_source: { path: '/sds.yaml' } };
    const asked = [{ name: 'own' }, { name: 'web', sds_config }];
    const own = { name: 'own', tls_certificate: pair(ec) };
    const come = messageOf<Secret>('Secret', { name: 'web', tls_certificate: pair(rsa) });
    const { settings, errors } = convert({ tls_certificate_sds_secret_configs: asked }, [own], {}, [come]);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      settings.certificates.map(({ keyType }) => keyType),
      ['ec', 'rsa'],
    );
    assert.deepEqual(
      settings.secrets.map(({ name, kind, source }) => [name, kind, source.origin.kind]),
      [['web', 'tls_certificate', 'file']],
    );
    assert.deepEqual(
      settings.files.map(({ secret }) => secret),
      [undefined, undefined, 'web', 'web'],
    );
  });

  it('are waited for where they come by discovery: one of several is enough', () => {
    const sds_config = { path_config_source: { path: '/sds.yaml' } };
    const asked = [
      { name: 'one', sds_config },
      { name: 'two', sds_config },
    ];
    const both = convert({ tls_certificate_sds_secret_configs: asked });
    assert.deepEqual([both.errors, both.settings.missingSecrets], [[], ['one', 'two']]);
    const come = messageOf<Secret>('Secret', { name: 'two', tls_certificate: pair(ec) });
    const one = convert({ tls_certificate_sds_secret_configs: asked }, [], {}, [come]);
    assert.deepEqual([one.settings.certificates.length, one.settings.missingSecrets], [1, []]);
    const trust = convert({ validation_context_sds_secret_config: asked[0] });
    assert.deepEqual([trust.settings.validation, trust.settings.missingSecrets], [null, ['one']]);
    const nameless = convert({ tls_certificate_sds_secret_configs: [{ sds_config }] });
    assert.deepEqual(nameless.errors, [
      'tls.tls_certificate_sds_secret_configs[0].name: is required: sds_config is asked by it',
    ]);
  });

  it('name a secret that is missing, or of another kind', () => {
    const asked = [{ name: 'own' }, { name: 'none' }];
    const own = { name: 'own', validation_context: {} };
    assert.deepEqual(convert({ tls_certificate_sds_secret_configs: asked }, [own]).errors, [
      'tls.tls_certificate_sds_secret_configs[0].name: secret "own" is no tls_certificate, but a validation_context',
      'tls.tls_certificate_sds_secret_configs[1].name: secret "none" does not exist',
    ]);
  });
});

describe('parameters of a TLS context', () => {
  it('are those of TLS 1.2 and 1.3 by default', () => {
    const { minVersion, maxVersion, ciphers, curves, signatureAlgorithms } = convert({}).settings;
    assert.deepEqual(
      [minVersion, maxVersion, ciphers, curves, signatureAlgorithms],
      ['TLSv1.2', 'TLSv1.3', '', '', ''],
    );
  });

  it('list ciphers, curves and signature algorithms in their order', () => {
    const { settings, errors } = convert({
      tls_params: {
        tls_minimum_protocol_version: 'TLSv1_2',
        tls_maximum_protocol_version: 'TLSv1_2',
        cipher_suites: ['[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]', 'ECDHE-RSA-AES256-GCM-SHA384'],
        ecdh_curves: ['X25519', 'P-256'],
        signature_algorithms: ['ecdsa_secp256r1_sha256'],
      },
    });
    assert.deepEqual(errors, []);
    assert.equal(
      settings.ciphers,
      'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-AES256-GCM-SHA384',
    );
    assert.equal(settings.maxVersion, 'TLSv1.2');
    assert.equal(settings.curves, 'X25519:P-256');
    assert.equal(settings.signatureAlgorithms, 'ecdsa_secp256r1_sha256');
  });

  it('must be known by name, and versions in order', () => {
    const { errors } = convert({
      tls_params: {
        tls_minimum_protocol_version: 'TLSv1_3',
        tls_maximum_protocol_version: 'TLSv1_2',
        cipher_suites: ['ECDHE-RSA-AES256-GCM-SHA384', 'ROT13'],
        ecdh_curves: ['circle'],
        signature_algorithms: ['trust-me'],
      },
      alpn_protocols: ['h2', ''],
    });
    assert.deepEqual(errors, [
      'tls.alpn_protocols[1]: "" has 0 bytes; 1 to 255 can be named',
      'tls.tls_params.tls_minimum_protocol_version: TLSv1.3 is newer than the newest allowed, TLSv1.2',
      'tls.tls_params.cipher_suites[1]: "ROT13" is not a cipher suite that this build knows',
      'tls.tls_params.ecdh_curves[0]: "circle" is not a curve that this build knows',
      'tls.tls_params.signature_algorithms[0]: "trust-me" is not a signature algorithm that this build knows',
    ]);
  });
});

describe('validation in a TLS context', () => {
  it('reads authorities, hashes and names', () => {
    const digest = createHash('sha256').update('x');
    const hex = digest.copy().digest('hex').toUpperCase();
    const spki = digest.digest('base64');
    const { settings, errors } = convert({
      validation_context: {
        trusted_ca: file(ec.certificatePath),
        verify_certificate_hash: [hex.replace(/(..)(?=.)/g, '$1:')],
        verify_certificate_spki: [spki],
        match_typed_subject_alt_names: [{ san_type: 'URI', matcher: { prefix: 'spiffe://' } }],
        trust_chain_verification: 'ACCEPT_UNTRUSTED',
      },
    });
    assert.deepEqual(errors, []);
    const { validation } = settings;
    assert.equal(validation!.trustedCa!.includes('BEGIN CERTIFICATE'), true);
    assert.deepEqual(validation!.certificateHashes, [hex.toLowerCase()]);
    assert.deepEqual(validation!.spkiHashes, [spki]);
    assert.equal(validation!.acceptsUntrusted, true);
    const match = { kind: 'prefix', value: 'spiffe://', ignoresCase: false };
    assert.deepEqual(validation!.subjectAltNames, [{ type: 'uri', match }]);
  });

  it('refuses files that are neither, hashes that are none and names without anybody to believe', () => {
    const { errors } = convert({
      validation_context: {
        trusted_ca: file(ec.keyPath),
        crl: file(ec.certificatePath),
        verify_certificate_hash: ['g'.repeat(64)],
        match_subject_alt_names: [{ exact: 'a' }],
      },
    });
    assert.deepEqual(errors, [
      `tls.validation_context.crl: "${ec.certificatePath}" holds no certificate revocation list in PEM`,
      `tls.validation_context.trusted_ca: "${ec.keyPath}" holds no certificate in PEM`,
      'tls.validation_context.verify_certificate_hash[0]: is not a SHA-256 hash of 64 hexadecimal digits',
    ]);
    const unbelieved = convert({
      validation_context: { crl: file(ec.certificatePath), match_subject_alt_names: [{ exact: 'a' }] },
    });
    assert.deepEqual(unbelieved.errors.slice(1), [
      'tls.validation_context: names of a certificate say nothing unless trusted_ca says whom to believe',
      'tls.validation_context.crl: needs trusted_ca',
    ]);
  });

  it('has one fault where authorities cannot be read, and none for want of them', () => {
    const validation_context = { match_subject_alt_names: [{ exact: 'a' }] };
    const missing = convert({ validation_context: { ...validation_context, trusted_ca: file('/nowhere/ca.pem') } });
    assert.equal(missing.errors.length, 1, missing.errors.join('\n'));
    assert.match(
      missing.errors[0]!,
      /^tls\.validation_context\.trusted_ca: "\/nowhere\/ca\.pem" cannot be read: ENOENT/,
    );
    const unset = convert({
      validation_context: { ...validation_context, trusted_ca: { environment_variable: 'NO_CA' } },
    });
    assert.deepEqual(unset.errors, ['tls.validation_context.trusted_ca.environment_variable: "NO_CA" is not set']);
  });

  it('is told of a key that this user may not read', () => {
    const closed = join(folder.path, 'closed.key');
    writeFileSync(closed, ec.key, { mode: 0 });
    chmodSync(folder.path, 0o755);
    const tls_certificates = [{ ...pair(ec), private_key: file(closed) }];
    const { errors } = asNobody(() => convert({ tls_certificates }));
    assert.equal(errors.length, 1);
    assert.match(
      errors[0]!,
      /^tls\.tls_certificates\[0\]\.private_key: ".*closed\.key" cannot be read: EACCES: permission denied/,
    );
  });

  it('puts a secret over a context', () => {
    const config = { name: 'ca' };
    const secret = { name: 'ca', validation_context: { trusted_ca: file(ec.certificatePath) } };
    const { settings, errors } = convert(
      {
        combined_validation_context: {
          default_validation_context: { match_subject_alt_names: [{ exact: 'a' }] },
          validation_context_sds_secret_config: config,
        },
      },
      [secret],
    );
    assert.deepEqual(errors, []);
    assert.equal(settings.validation!.subjectAltNames.length, 1);
    assert.notEqual(settings.validation!.trustedCa, null);
  });
});
