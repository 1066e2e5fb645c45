// All suites by name.

import type { Suites } from './case.ts';
import { counterCases } from './suites/counters.ts';
import { histogramCases } from './suites/histogram.ts';
import { leastRequestCases } from './suites/least-request.ts';
import { maglevCases } from './suites/maglev.ts';
import { ringHashCases } from './suites/ring-hash.ts';

export const SUITES: Suites = {
  histogram: histogramCases,
  maglev: maglevCases,
  'ring-hash': ringHashCases,
  'least-request': leastRequestCases,
  counters: counterCases,
};
