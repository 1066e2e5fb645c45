// Loading and validating a large bootstrap: 5,000 clusters, 2.4 MB of YAML. Cold is what a start costs: the first load
// of a fresh process; warm is the median of the loads after it.
// Bar: 2.5 s cold.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { formatFault, loadBootstrap } from '../src/config/index.ts';

const CLUSTERS = 5_000;
const WARM_LOADS = 5;

function clusterYaml(index: number): string {
  const endpoint = (host: number): string => `
              - endpoint:
                  address:
                    socket_address:
                      address: 10.${index >> 8}.${index & 255}.${host}
                      port_value: 8080
                load_balancing_weight: ${host}`;
  return `
    - name: service-${index}
      type: STATIC
      connect_timeout: 0.25s
      lb_policy: ROUND_ROBIN
      load_assignment:
        cluster_name: service-${index}
        endpoints:
          - lb_endpoints:${endpoint(1)}${endpoint(2)}`;
}

const folder = mkdtempSync(path.join(tmpdir(), 'weir-bench-'));
const configPath = path.join(folder, 'bootstrap.yaml');
const text = `static_resources:\n  clusters:${Array.from({ length: CLUSTERS }, (_, index) => clusterYaml(index)).join('')}\n`;
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
