// Three HTTP filters that front proxies have: each does what is usual with every request, and lets it pass.

const HTTP_FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';

function filter(name: string, type: string, settings: object): object {
  return {
    name: `envoy.filters.http.${name}`,
    typed_config: { '@type': `${HTTP_FILTERS}.${name}.v3.${type}`, ...settings },
  };
}

const append = (key: string, value: string): object => ({ append: { header: { key, value } } });
const ALWAYS = { default_value: { numerator: 100 } };
const MANY = 1_000_000_000;

/** In the order in which they stand before the router. */
export const SIMPLE_FILTERS: readonly object[] = [
  filter('header_mutation', 'HeaderMutation', {
    mutations: { request_mutations: [append('x-team', 'edge')], response_mutations: [append('x-served-by', 'edge')] },
  }),
  filter('rbac', 'RBAC', {
    rules: { action: 'ALLOW', policies: { all: { permissions: [{ any: true }], principals: [{ any: true }] } } },
  }),
  filter('local_ratelimit', 'LocalRateLimit', {
    stat_prefix: 'bench',
    token_bucket: { max_tokens: MANY, tokens_per_fill: MANY, fill_interval: '1s' },
    filter_enabled: ALWAYS,
    filter_enforced: ALWAYS,
  }),
];
