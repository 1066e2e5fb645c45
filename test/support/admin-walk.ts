// What a walk over the admin interface asks: every endpoint, each of its parameters, with a good value and with a bad one.
// test/integration/admin-walk.test.ts asks the real program, and holds this list against the table of endpoints.

export interface Step {
  /** `POST /logging?level=info`; GET without a method. */
  readonly ask: string;
  readonly status: number;
  /** Content type. */
  readonly type: string;
  /** Of the body. */
  readonly tells: RegExp;
  /** Body of the request. */
  readonly sends?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer has no end: its beginning is enough. */
  readonly isOpenEnded?: boolean;
}

const TEXT = 'text/plain; charset=UTF-8';
const PLAIN = 'text/plain';
const JSON_TYPE = 'application/json';
const HTML = 'text/html; charset=UTF-8';
const PROMETHEUS = 'text/plain; version=0.0.4; charset=UTF-8';
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const BYTES = 'application/octet-stream';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

function ok(ask: string, type: string, tells: RegExp, more: Partial<Step> = {}): Step {
  return { ask, status: 200, type, tells, ...more };
}

function refused(ask: string, tells: RegExp, more: Partial<Step> = {}): Step {
  return { ask, status: 400, type: TEXT, tells, ...more };
}

const OK = /^OK\n$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: such bytes are what a compressed answer begins with
const GZIP = /^\x1f\x8b/;

const TAP_ORDER = `
config_id: walk
tap_config:
  match: { any_match: true }
  output_config: { sinks: [{ buffered_admin: { max_traces: 1, timeout: 0.01s } }] }
`;

/** What /stats and /stats/prometheus have both. */
function selections(path: string, type: string): readonly Step[] {
  return [
    ok(`${path}?usedonly`, type, /cluster_manager/),
    ok(`${path}?filter=^server\\.live$`, type, /^(?!.*uptime).*live/s),
    refused(`${path}?filter=(`, /^Invalid re2 regex$/),
    refused(`${path}?filter=${'x'.repeat(100_000)}(`, /./),
    ok(`${path}?type=Counters`, type, /^(?!.*uptime).*update_attempt/s),
    ok(`${path}?type=Gauges`, type, /^(?!.*update_attempt).*uptime/s),
    ok(`${path}?type=Histograms`, type, /^(?!.*uptime).*initialization_time/s),
    ok(`${path}?type=TextReadouts`, type, /^(?!.*uptime)/s),
    refused(`${path}?type=Nothing`, /^invalid &type= param$/),
    ok(`${path}?histogram_buckets=cumulative&filter=initialization_time`, type, /initialization_time/),
    ok(`${path}?histogram_buckets=disjoint&filter=initialization_time`, type, /initialization_time/),
    ok(`${path}?histogram_buckets=detailed&filter=initialization_time`, type, /initialization_time/),
    ok(`${path}?histogram_buckets=none&filter=initialization_time`, type, /initialization_time/),
    ok(`${path}?histogram_buckets=summary&filter=initialization_time`, type, /initialization_time/),
    refused(`${path}?histogram_buckets=round`, /^usage: \/stats\?histogram_buckets=\(/),
    ok(`${path}?quantiles=50,99.99&filter=initialization_time`, type, /initialization_time/),
    refused(`${path}?quantiles=101`, /quantiles/),
    ok(`${path}?hidden=only`, type, /^$/),
    ok(`${path}?hidden=include&filter=live`, type, /live/),
    refused(`${path}?hidden=some`, /^usage: \/stats\?hidden=/),
  ];
}

const PROMETHEUS_PARAMETERS: readonly Step[] = [
  ok('/stats/prometheus?text_readouts&type=TextReadouts', PROMETHEUS, /envoy_server_version_text\{text_value="/),
  ok('/stats/prometheus?per_host&filter=rq_total', PROMETHEUS, /./),
  ok('/stats/prometheus?namespace=proxy&filter=server.live', PROMETHEUS, /^proxy_server_live\{\} 1$/m),
  refused('/stats/prometheus?namespace=9', /namespace/),
  ok('/stats/prometheus?naming=strict&filter=server.live', PROMETHEUS, /^envoy_server_live\{\} 1$/m),
  refused('/stats/prometheus?naming=loose', /^usage: \/stats\?naming=\(native\|strict\)\n$/),
];

/** By path, in the order of /help; what ends the server comes last. */
export const ADMIN_WALK: Readonly<Record<string, readonly Step[]>> = {
  '/': [ok('/', HTML, /^<!doctype html>/i)],
  '/certs': [ok('/certs', JSON_TYPE, /^\{\n "certificates": \[/)],
  '/clusters': [
    ok('/clusters', TEXT, /^version_info::static\nweb::observability_name::web\n/),
    ok('/clusters?format=json', JSON_TYPE, /^\{\n "cluster_statuses": \[/),
    ok('/clusters?format=json&health_checks', JSON_TYPE, /"web"/),
    ok('/clusters?format=other', TEXT, /^version_info::static\n/),
  ],
  '/config_dump': [
    ok('/config_dump', JSON_TYPE, /^\{\n "configs": \[.*BootstrapConfigDump/s),
    ok('/config_dump?resource=static_clusters', JSON_TYPE, /"web"/),
    refused('/config_dump?resource=nothing', /nothing/, { status: 404, type: PLAIN }),
    ok('/config_dump?mask=bootstrap.node.id', JSON_TYPE, /"walker"/),
    refused('/config_dump?mask=no.such', /no\.such|mask/, { type: PLAIN }),
    ok('/config_dump?name_regex=we.*', JSON_TYPE, /"web"/),
    refused('/config_dump?name_regex=(', /^Error while parsing name_regex from \(/, { type: PLAIN }),
    ok('/config_dump?include_eds', JSON_TYPE, /EndpointsConfigDump/),
    ok('/config_dump?resource=static_clusters&mask=cluster.name&name_regex=web', JSON_TYPE, /^(?!.*STATIC).*"web"/s),
  ],
  '/contention': [ok('/contention', JSON_TYPE, /^\{\n "num_contentions": "\d+"/)],
  '/cpuprofiler': [
    refused('POST /cpuprofiler', /^\?enable=<y\|n>\n$/),
    refused('POST /cpuprofiler?enable=x', /^\?enable=<y\|n>\n$/),
    ok('POST /cpuprofiler?enable=y', TEXT, OK),
    ok('POST /cpuprofiler?enable=n', TEXT, OK),
  ],
  '/heap_dump': [ok('/heap_dump', BYTES, GZIP)],
  '/heapprofiler': [
    refused('POST /heapprofiler?enable=x', /^\?enable=<y\|n>\n$/),
    refused('POST /heapprofiler?enable=n', /^Fail to stop heap profiler: not started$/),
    ok('POST /heapprofiler?enable=y', TEXT, /^Starting heap profiler$/),
    refused('POST /heapprofiler?enable=y', /^Fail to start heap profiler: already started$/),
    ok('POST /heapprofiler?enable=n', TEXT, /^Heap profiler stopped and data written to /),
  ],
  '/help': [ok('/help', TEXT, /^admin commands are:\n {2}\/: /)],
  '/hot_restart_version': [ok('/hot_restart_version', TEXT, /^[\w. -]+\n?$/)],
  '/hystrix_event_stream': [
    ok('/hystrix_event_stream', 'text/event-stream', /^data: \{"type": "HystrixCommand"/, { isOpenEnded: true }),
  ],
  '/init_dump': [
    ok('/init_dump', JSON_TYPE, /^\{/),
    ok('/init_dump?mask=listener', JSON_TYPE, /^\{\}\n$/),
    ok('/init_dump?mask=nothing', JSON_TYPE, /^\{\}\n$/),
  ],
  '/listeners': [
    ok('/listeners', TEXT, /^edge::127\.0\.0\.1:\d+\n$/),
    ok('/listeners?format=json', JSON_TYPE, /"listener_statuses"/),
    ok('/listeners?format=other', TEXT, /^edge::/),
  ],
  '/logging': [
    ok('POST /logging', TEXT, /^active loggers:\n {2}admin: info\n/),
    ...['trace', 'debug', 'info', 'warning', 'error', 'critical', 'off'].map((level) =>
      ok(`POST /logging?level=${level}`, TEXT, new RegExp(`^active loggers:\\n {2}admin: ${level}\\n`)),
    ),
    ok('POST /logging?level=info', TEXT, / {2}router: info\n/),
    refused('POST /logging?level=loud', /^error: /),
    ok('POST /logging?paths=admin=info,router:warning', TEXT, / {2}router: warning\n/),
    refused('POST /logging?paths=admin=info,nobody=info', /^error: unknown logger name\n/),
    refused('POST /logging?paths=admin', /^error: /),
    ok('POST /logging?router=error', TEXT, / {2}router: error\n/),
    refused('POST /logging?nobody=info', /^error: unknown logger name\n/),
    ok('POST /logging?level=info', TEXT, / {2}router: info\n/),
  ],
  '/memory': [
    ok('/memory', JSON_TYPE, /^\{\n "allocated": "\d+"/),
    ok('POST /memory', JSON_TYPE, /^\{\n "allocated": "\d+"/),
  ],
  '/ready': [ok('/ready', TEXT, /^LIVE\n$/)],
  '/reopen_logs': [ok('POST /reopen_logs', TEXT, OK)],
  '/reset_counters': [ok('POST /reset_counters', TEXT, OK)],
  '/runtime': [ok('/runtime', JSON_TYPE, /"layers": \[\s*"base",\s*"admin"\s*\]/)],
  '/runtime_modify': [
    ok('POST /runtime_modify?walk.key=5&walk.other=a%20b', TEXT, OK),
    ok('POST /runtime_modify', TEXT, OK, { sends: 'walk.key=6', headers: FORM }),
    refused('POST /runtime_modify', /^usage: \/runtime_modify\?key1=value1/),
    refused('POST /runtime_modify?=1', /no key/),
    refused('POST /runtime_modify?overload.global_downstream_max_connections=many', /many/),
    ok('POST /runtime_modify?walk.key=&walk.other', TEXT, OK),
  ],
  '/server_info': [ok('/server_info', JSON_TYPE, /^\{\n "version": "[^"]+",\n "state": "LIVE",/)],
  '/stats': [
    ...selections('/stats', TEXT),
    ok('/stats', TEXT, /^server\.live: 1$/m),
    ok('/stats?format=text&filter=server.live', TEXT, /^server\.live: 1\n$/),
    ok('/stats?format=json&filter=server.live', JSON_TYPE, /^\{"stats":\[\{"name":"server\.live","value":1\}\]\}/),
    ok('/stats?format=prometheus&filter=server.live', PROMETHEUS, /^envoy_server_live\{\} 1$/m),
    ok('/stats?format=html', HTML, /^<!doctype html>/i),
    ok('/stats?format=active-html', HTML, /^<!doctype html>/i),
    refused('/stats?format=xml', /^usage: \/stats\?format=\(/),
    ...PROMETHEUS_PARAMETERS.map(({ ask, ...rest }) => ({
      ask: ask.replace('/stats/prometheus?', '/stats?format=prometheus&'),
      ...rest,
    })),
  ],
  '/stats/prometheus': [
    ...selections('/stats/prometheus', PROMETHEUS),
    ...PROMETHEUS_PARAMETERS,
    ok('/stats/prometheus?naming=strict', OPEN_METRICS, /# EOF\n$/, {
      headers: { accept: 'application/openmetrics-text' },
    }),
  ],
  '/stats/recentlookups': [ok('/stats/recentlookups', TEXT, /^Lookup tracking is not enabled\..*\n\ntotal: \d+\n$/)],
  '/stats/recentlookups/clear': [ok('POST /stats/recentlookups/clear', TEXT, OK)],
  '/stats/recentlookups/disable': [
    ok('POST /stats/recentlookups/disable', TEXT, OK),
    ok('/stats/recentlookups', TEXT, /^Lookup tracking is not enabled\./),
  ],
  '/stats/recentlookups/enable': [
    ok('POST /stats/recentlookups/enable', TEXT, OK),
    ok('/stats/recentlookups', TEXT, /^ {3}Count Lookup\n/),
    ok('POST /stats/recentlookups/disable', TEXT, OK),
  ],
  '/tap': [
    ok('POST /tap', JSON_TYPE, /^$/, { sends: TAP_ORDER }),
    refused('POST /tap', /^\/tap requires a JSON\/YAML body$/),
    refused('POST /tap', /^body:\d+:\d+: /, { sends: 'config_id: [' }),
    refused('POST /tap', /^Unknown config id 'nobody'/, { sends: TAP_ORDER.replace('walk', 'nobody') }),
  ],
  '/healthcheck/fail': [
    ok('POST /healthcheck/fail', TEXT, OK),
    { ask: '/ready', status: 503, type: TEXT, tells: /^DRAINING\n$/ },
  ],
  '/healthcheck/ok': [ok('POST /healthcheck/ok', TEXT, OK), ok('/ready', TEXT, /^LIVE\n$/)],
  '/drain_listeners': [
    refused('POST /drain_listeners?inboundonlyy', /^unknown parameter "inboundonlyy"/),
    refused('POST /drain_listeners?skip_exit', /^skip_exit requires graceful\n$/),
    ok('POST /drain_listeners?graceful&skip_exit', TEXT, OK),
    ok('POST /drain_listeners?inboundonly', TEXT, OK),
  ],
  '/quitquitquit': [ok('POST /quitquitquit', TEXT, OK)],
};

/** Parameters that have no bad value: what they do not know is an answer, too. */
export const ANY_VALUE: ReadonlySet<string> = new Set(['/clusters format', '/listeners format', '/init_dump mask']);
