import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CertificateView } from '../../../src/admin/index.ts';
import { certificateTroubles } from '../../../src/process/certificate-troubles.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const DAY_MS = 86_400_000;

function certificate(path: string, expiresMs: number, fields: Partial<CertificateView> = {}): CertificateView {
  const names = { dnsNames: [], uris: [], ipAddresses: [] };
  return { path, serialNumber: `A${path.length}`, ...names, validFromMs: 0, expiresMs, ocsp: null, ...fields };
}

function troublesOf(chains: readonly CertificateView[], authorities: readonly CertificateView[] = []) {
  return certificateTroubles([{ chains, authorities }], NOW);
}

describe('the page warns of certificates', () => {
  it('that have expired or do so soon, the first one first, and of no others', () => {
    const soon = certificate('/soon.pem', NOW + 30 * DAY_MS);
    const chains = [
      certificate('/later.pem', NOW + 30 * DAY_MS + 1),
      soon,
      certificate('/today.pem', NOW + DAY_MS - 1),
      certificate('/over.pem', NOW),
    ];
    assert.deepEqual(troublesOf(chains, [certificate('/ca.pem', NOW + DAY_MS)]), [
      { isGrave: true, text: 'certificate /over.pem has expired on 2026-01-31' },
      { isGrave: false, text: 'certificate /today.pem expires today, on 2026-02-01' },
      { isGrave: false, text: 'authority /ca.pem expires in a day, on 2026-02-01' },
      { isGrave: false, text: 'certificate /soon.pem expires in 30 days, on 2026-03-02' },
    ]);
  });

  it('once each, by what those without a file are for', () => {
    const inline = certificate('<inline>', NOW - 1, { dnsNames: ['a.example', 'b.example'] });
    const other = certificate('<inline>', NOW - 1, { serialNumber: 'BEEF' });
    const context = { chains: [inline, other], authorities: [] };
    assert.deepEqual(
      certificateTroubles([context, context], NOW).map(({ text }) => text),
      [
        'certificate <inline> of a.example has expired on 2026-01-31',
        'certificate <inline> of beef has expired on 2026-01-31',
      ],
    );
  });

  it('by name only as far as they can be read', () => {
    const days = [1, 2, 3, 4, 5, 6, 7];
    const over = days.map((day) => certificate(`/over${day}`, NOW - day * DAY_MS));
    const soon = days.map((day) => certificate(`/soon${day}`, NOW + day * DAY_MS));
    const texts = troublesOf([...over, ...soon]);
    assert.equal(texts.length, 12);
    assert.deepEqual(texts[5], { isGrave: true, text: '2 more have expired; /certs shows all certificates' });
    assert.deepEqual(texts[11], {
      isGrave: false,
      text: '2 more expire by 2026-02-07; /certs shows all certificates',
    });
    assert.equal(troublesOf(over.slice(0, 5)).length, 5);
  });
});
