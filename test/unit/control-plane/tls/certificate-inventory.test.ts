import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CertificateInventory } from '../../../../src/control-plane/tls/certificate-inventory.ts';
import type { TlsSettings } from '../../../../src/snapshot/index.ts';
import { CertificateFolder, type TestCertificate } from '../../../support/certificates.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

function context(own: TestCertificate, authority: TestCertificate | null): TlsSettings {
  const sources = { chain: null, key: null, password: null, pkcs12: null, ocspStaple: null };
  const certificate = {
    sources: { ...sources, chain: { kind: 'file', path: own.certificatePath } },
    leaf: own.certificate,
  };
  const validation = authority && { sources: { trustedCa: null, crl: null }, trustedCa: authority.certificate };
  return { certificates: [certificate], validation } as unknown as TlsSettings;
}

describe('the inventory of certificates', () => {
  it('counts the days until the first of them expires, authorities included', async () => {
    using folder = new CertificateFolder();
    const long = await folder.make('long', { days: 90, altNames: 'IP:::1,DNS:b.example,URI:spiffe://a' });
    const short = await folder.make('short', { days: 10 });
    const contexts: TlsSettings[] = [];
    const inventory = new CertificateInventory(() => contexts);
    assert.equal(inventory.daysUntilFirstExpires(Date.now()), undefined);
    contexts.push(context(long, null));
    assert.equal(inventory.daysUntilFirstExpires(Date.now()), 89);
    contexts.push(context(long, short));
    assert.equal(inventory.daysUntilFirstExpires(Date.now()), 9);
    assert.equal(inventory.daysUntilFirstExpires(Date.now() + 11 * DAY_MS), 0);
    const [first, second] = inventory.list();
    const { path, dnsNames, uris, ipAddresses } = first!.chains[0]!;
    assert.deepEqual(
      [path, dnsNames, uris, ipAddresses],
      [long.certificatePath, ['b.example'], ['spiffe://a'], ['::1']],
    );
    assert.equal(second!.authorities[0]!.path, '<inline>');
  });
});
