// Counters: one increment is an addition to a number of the thread, with the checks of the public API.

import { createCore } from '../../core/index.ts';
import type { BenchCase } from '../case.ts';
import { PlainCounter } from '../twins/counter.ts';

export function counterCases(): readonly BenchCase[] {
  return [
    {
      suite: 'counters',
      name: 'add 1',
      open() {
        const counter = createCore().counter('requests');
        const twin = new PlainCounter();
        return {
          subject: (times) => {
            for (let n = 0; n < times; n += 1) counter.add();
          },
          twin: (times) => {
            for (let n = 0; n < times; n += 1) twin.add();
          },
        };
      },
    },
    {
      suite: 'counters',
      name: 'add to 64 counters in turn',
      open() {
        const core = createCore();
        const counters = Array.from({ length: 64 }, (_, index) => core.counter(`requests_${index}`));
        const twins = counters.map(() => new PlainCounter());
        return {
          subject: (times) => {
            for (let n = 0; n < times; n += 1) counters[n & 63]!.add(3);
          },
          twin: (times) => {
            for (let n = 0; n < times; n += 1) twins[n & 63]!.add(3);
          },
        };
      },
    },
  ];
}
