// What HTTP filters cost: small requests through weir with one simple filter, and with a chain of three, beside weir without.
// Bar: the chain leaves 0.88 of the requests.
// `npm run bench -- http-filters --starts 5 --turns 6`

import { measureBesidePlain } from './support/beside-plain.ts';
import { SIMPLE_FILTERS } from './support/simple-filters.ts';

await measureBesidePlain('http-filters', [
  { name: 'one filter', extras: { httpFilters: SIMPLE_FILTERS.slice(0, 1) }, bar: null },
  { name: 'three filters', extras: { httpFilters: SIMPLE_FILTERS }, bar: 0.88 },
]);
