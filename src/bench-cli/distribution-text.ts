// The distribution report as text: a table, and for each balancer a plot of how many hosts carry which load.

import { createCore } from '../core/index.ts';
import { type DistributionOptions, type Movement, type Spread, spreads } from './distribution.ts';
import { significant, textTable } from './text-table.ts';

const PLOT_ROWS = 9;
const BAR_WIDTH = 50;

export function* distributionText(options: DistributionOptions): Generator<string> {
  const all = [...spreads(createCore(), options)];
  yield `${options.keys} keys or picks; loads relative to the share that a host's weight asks for\n\n`;
  yield textTable(
    [
      { title: 'hosts', isFigure: true },
      { title: 'balancer' },
      { title: 'min', isFigure: true },
      { title: 'max', isFigure: true },
      { title: 'stddev', isFigure: true },
      { title: 'moved when one leaves (least)', isFigure: true },
      { title: 'when one joins (least)', isFigure: true },
    ],
    all.map(({ hosts, balancer, min, max, stddev, moved }) => [
      String(hosts),
      balancer,
      significant(min),
      significant(max),
      significant(stddev),
      moved ? movementText(moved.whenOneLeaves) : '',
      moved ? movementText(moved.whenOneJoins) : '',
    ]),
  );
  for (const spread of all) yield `\n${spread.balancer}, ${spread.hosts} hosts: hosts by load\n${plot(spread)}`;
}

/** As shares of all keys. */
function movementText({ keys, moved, needed }: Movement): string {
  return `${significant((moved / keys) * 100)}% (${significant((needed / keys) * 100)}%)`;
}

/**
 * One row for each stretch of load from the least to the most:
 *
 *   0.92 to 0.96 |########## 10
 */
function plot({ loads, min, max }: Spread): string {
  const rows = max > min ? PLOT_ROWS : 1;
  const step = (max - min) / rows;
  const counts = new Uint32Array(rows);
  for (const load of loads) counts[step === 0 ? 0 : Math.min(rows - 1, Math.floor((load - min) / step))]! += 1;
  const most = Math.max(...counts);
  const labels = Array.from(counts, (_, row) => `${edge(min + row * step)} to ${edge(min + (row + 1) * step)}`);
  const width = Math.max(...labels.map((label) => label.length));
  return Array.from(counts, (count, row) => {
    const bar = '#'.repeat(Math.ceil((count / most) * BAR_WIDTH));
    return `  ${labels[row]!.padStart(width)} |${bar} ${count}\n`;
  }).join('');
}

function edge(load: number): string {
  return load.toFixed(3);
}
