// Fields that several messages have, of which the same is to be said.

import type { FieldNote } from './note.ts';
import { DNS_SETTINGS, RESOLVER, STRICT_DNS } from './tests.ts';

export const DNS_FIELDS: Readonly<Record<string, FieldNote>> = {
  dns_refresh_rate: ['Wait between lookups, 1 ms or more.', '5 s', STRICT_DNS],
  dns_failure_refresh_rate: [
    'Waits after failures: random below a bound that doubles.',
    '`dns_refresh_rate`',
    STRICT_DNS,
  ],
  respect_dns_ttl: ['Look up again when the record that expires first does.', '`false`', STRICT_DNS],
  dns_jitter: ['A random part of this is added to every wait.', '0 s', STRICT_DNS],
  dns_lookup_family: ['Which kinds of address are asked for.', '`AUTO`', RESOLVER],
  typed_dns_resolver_config: [
    'Whom lookups ask, and how.',
    'the resolver of the bootstrap, or the system',
    DNS_SETTINGS,
  ],
};
