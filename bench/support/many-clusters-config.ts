// A large bootstrap for benchmarks of loading: 5,000 clusters of two hosts, 3.1 MB of YAML.

export const CLUSTERS = 5_000;

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

export function manyClusters(): string {
  return `static_resources:\n  clusters:${Array.from({ length: CLUSTERS }, (_, index) => clusterYaml(index)).join('')}\n`;
}
