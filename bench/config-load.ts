// Loading and validating a large bootstrap: 5,000 clusters, 3.1 MB of YAML. Cold is what a start costs: the first load
// of a fresh process; warm is the median of the loads after it.
// Bar: 2.5 s cold; start-up.ts measures the whole process that validates the same.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { formatFault, loadBootstrap } from '../src/config/index.ts';
import { CLUSTERS, manyClusters } from './support/many-clusters-config.ts';

const WARM_LOADS = 5;

const folder = mkdtempSync(path.join(tmpdir(), 'weir-bench-'));
const configPath = path.join(folder, 'bootstrap.yaml');
const text = manyClusters();
writeFileSync(configPath, text);

function loadMs(): number {
  const start = performance.now();
  const { bootstrap, faults } = loadBootstrap({
    configPath,
    configYaml: '',
    allowUnknownStaticFields: false,
    serviceCluster: '',
    serviceNode: '',
    serviceZone: '',
  });
  const elapsed = performance.now() - start;
  if (bootstrap?.clusters.length !== CLUSTERS) throw new Error(faults.map(formatFault).join('\n'));
  return elapsed;
}

try {
  const cold = loadMs();
  const warm = Array.from({ length: WARM_LOADS }, loadMs).sort((a, b) => a - b);
  const megabytes = (text.length / 1e6).toFixed(1);
  console.log(
    `${CLUSTERS} clusters, ${megabytes} MB of YAML: cold ${cold.toFixed(0)} ms, warm ${warm[WARM_LOADS >> 1]!.toFixed(0)} ms`,
  );
} finally {
  rmSync(folder, { recursive: true });
}
