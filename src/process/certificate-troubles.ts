// What the home page of the admin interface warns of certificates: those that clients, or this proxy, refuse already, and those that
// somebody has to renew soon. The first to expire comes first.

import type { CertificatesView, CertificateView, TroubleView } from '../admin/index.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Time to have another one made. */
const WARNED_BEFORE_DAYS = 30;
/** The others are counted. */
const MOST_NAMED = 5;

interface Ending {
  readonly label: string;
  readonly expiresMs: number;
}

export function certificateTroubles(loaded: Iterable<CertificatesView>, nowMs: number): TroubleView[] {
  const endings = endingsOf(loaded, nowMs + WARNED_BEFORE_DAYS * DAY_MS);
  const over = endings.filter(({ expiresMs }) => expiresMs <= nowMs);
  const soon = endings.slice(over.length);
  const left = (expiresMs: number): string => days(Math.floor((expiresMs - nowMs) / DAY_MS));
  return [
    ...troubles(over, true, ({ label, expiresMs }) => `${label} has expired on ${dayOf(expiresMs)}`),
    ...troubles(soon, false, ({ label, expiresMs }) => `${label} expires ${left(expiresMs)}, on ${dayOf(expiresMs)}`),
  ];
}

/** Those that end before `untilMs`, each once, however many listeners present it. */
function endingsOf(loaded: Iterable<CertificatesView>, untilMs: number): Ending[] {
  const found = new Map<string, Ending>();
  for (const { authorities, chains } of loaded) {
    for (const [kind, certificates] of [
      ['authority', authorities],
      ['certificate', chains],
    ] as const) {
      for (const certificate of certificates) {
        if (certificate.expiresMs > untilMs) continue;
        const { path, serialNumber, expiresMs } = certificate;
        found.set(`${kind} ${path} ${serialNumber}`, { label: `${kind} ${nameOf(certificate)}`, expiresMs });
      }
    }
  }
  return [...found.values()].toSorted((a, b) => a.expiresMs - b.expiresMs);
}

/** Several may be inline: what they are for tells them apart. */
function nameOf({ path, serialNumber, dnsNames }: CertificateView): string {
  return path === '<inline>' ? `${path} of ${dnsNames[0] ?? serialNumber.toLowerCase()}` : path;
}

function troubles(endings: readonly Ending[], isGrave: boolean, text: (ending: Ending) => string): TroubleView[] {
  const named = endings.slice(0, MOST_NAMED).map((ending) => ({ isGrave, text: text(ending) }));
  const rest = endings.length - named.length;
  if (rest === 0) return named;
  const are = isGrave ? 'have expired' : `expire by ${dayOf(endings.at(-1)!.expiresMs)}`;
  return [...named, { isGrave, text: `${rest} more ${are}; /certs shows all certificates` }];
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function days(count: number): string {
  if (count === 0) return 'today';
  return count === 1 ? 'in a day' : `in ${count} days`;
}
