// Every option of the command line, once: parsing, checks, --help and /server_info read this table.
// Source: spec 2.7. An option is added here and nowhere else; src/cli/checks.ts holds the rules that look at
// a value's inside or at two options together.

import { LOG_LEVELS } from '../base/log-levels.ts';
import { hardwareThreads } from '../base/processors.ts';
import { MAX_WORKERS } from '../base/worker-limit.ts';
import type { OptionRow, OptionValues } from './option-row.ts';

export const DEFAULT_LOG_FORMAT = '[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v';

export const OPTIONS = [
  {
    name: 'config-path',
    flag: 'c',
    kind: 'text',
    default: '',
    help: 'Bootstrap file. The extension tells the format: .yaml or .yml, .json, .pb (binary proto3), .pb_text.',
    support: 'full',
    infoOrder: 3,
  },
  {
    name: 'config-yaml',
    kind: 'text',
    default: '',
    help: 'Bootstrap as YAML or JSON text, merged over the one of --config-path.',
    support: 'full',
    infoOrder: 4,
  },
  {
    name: 'mode',
    kind: 'choice',
    default: 'serve',
    choices: ['serve', 'validate', 'init_only'],
    complaint: 'error: unknown mode',
    help: 'serve: check the configuration, then serve. validate: check it, say OK or name all errors, and exit; no network traffic, no trace. init_only: start as for serve, and exit once everything is ready. Default: serve.',
    support: 'full',
    infoOrder: 19,
    infoForm: 'pascal-case',
  },
  {
    name: 'admin-address-path',
    kind: 'text',
    default: '',
    help: 'File to which the address and port of the admin interface are written.',
    support: 'full',
    infoOrder: 6,
  },
  {
    name: 'admin-read-only',
    kind: 'flag',
    help: 'Have the admin interface show everything and change nothing: what mutates answers 403.',
    support: 'full',
  },
  {
    name: 'admin-name',
    kind: 'texts',
    help: 'Host name by which the admin interface may be reached beside localhost, IP addresses and the name of this machine: that of a proxy before it. May be given several times.',
    support: 'full',
  },
  {
    name: 'local-address-ip-version',
    kind: 'choice',
    default: 'v4',
    choices: ['v4', 'v6'],
    complaint: 'error: unknown IP address version',
    help: "IP version of the server's own address, which stands for clients on this machine in X-Forwarded-For: v4 or v6. Default: v4.",
    support: 'full',
    infoOrder: 7,
  },
  {
    name: 'base-id',
    kind: 'count',
    default: 0,
    help: 'Base id of hot restart: unique per proxy on one machine, the same for all processes that follow one another.',
    support: 'full',
    infoOrder: 1,
    infoForm: 'int64',
  },
  {
    name: 'use-dynamic-base-id',
    kind: 'flag',
    help: 'Choose an unused base id. Takes precedence over --base-id; not allowed with a restart epoch above 0.',
    support: 'full',
    infoOrder: 31,
  },
  {
    name: 'base-id-path',
    kind: 'text',
    default: '',
    help: 'File to which the base id is written.',
    support: 'full',
    infoOrder: 32,
  },
  {
    name: 'concurrency',
    kind: 'count',
    /** Asked only where it is needed: the system takes its time to answer. */
    get default(): number {
      return Math.min(hardwareThreads(), MAX_WORKERS);
    },
    defaultText: 'the hardware threads of the machine',
    max: MAX_WORKERS,
    help: 'Number of worker threads; 0 still runs one. Default: the hardware threads of the machine.',
    support: 'full',
    infoOrder: 2,
  },
  {
    name: 'log-level',
    flag: 'l',
    kind: 'choice',
    default: 'info',
    choices: LOG_LEVELS,
    aliases: { warn: 'warning' },
    complaint: 'error: invalid log level specified',
    help: 'Log level: [trace][debug][info][warning|warn][error][critical][off]. Default: info.',
    support: 'full',
    infoOrder: 8,
  },
  {
    name: 'component-log-level',
    kind: 'text',
    default: '',
    help: 'Log levels of single components: a comma-separated list of component:level, such as upstream:debug.',
    support: 'full',
    infoOrder: 9,
  },
  {
    name: 'cpuset-threads',
    kind: 'flag',
    help: 'Take the number of worker threads from the CPU set of the process, or its CPU quota if that is less, when --concurrency is not given.',
    support: 'full',
    infoOrder: 25,
  },
  {
    name: 'log-path',
    kind: 'text',
    default: '',
    help: 'Log file, opened anew on SIGUSR1. Default: standard error.',
    support: 'full',
    infoOrder: 11,
  },
  {
    name: 'log-format',
    kind: 'text',
    default: DEFAULT_LOG_FORMAT,
    help: 'Layout of a log line, in %-flags such as %v (message), %l (level), %n (component), %g (source file).',
    support: 'full',
    infoOrder: 10,
  },
  {
    name: 'log-format-escaped',
    kind: 'flag',
    help: 'Write C-style escape sequences instead of line breaks and control characters inside of log lines.',
    support: 'full',
    infoOrder: 27,
  },
  {
    name: 'restart-epoch',
    kind: 'count',
    default: 0,
    help: 'Number of hot restarts that led to this process. Default: RESTART_EPOCH of the environment, which the restart wrapper sets, or 0.',
    support: 'full',
    infoOrder: 24,
  },
  {
    name: 'enable-fine-grain-logging',
    kind: 'flag',
    help: 'One logger per source file, each with its own level; --component-log-level and /logging take patterns of paths then.',
    support: 'full',
    infoOrder: 34,
  },
  {
    name: 'socket-path',
    kind: 'text',
    default: '@proxy_domain_socket',
    help: 'Beginning of the names of the sockets of hot restart; a leading @ means the abstract namespace.',
    support: 'full',
    infoOrder: 35,
  },
  {
    name: 'socket-mode',
    kind: 'text',
    default: '600',
    help: 'File mode of the sockets of hot restart, octal. Only with a --socket-path outside of the abstract namespace.',
    support: 'full',
    infoOrder: 36,
    infoForm: 'octal',
  },
  {
    name: 'hot-restart-version',
    kind: 'flag',
    help: 'Print the hot restart compatibility version and exit.',
    support: 'full',
    infoOrder: 12,
  },
  {
    name: 'service-cluster',
    kind: 'text',
    default: '',
    help: 'Name of the local service cluster; overrides node.cluster of the bootstrap.',
    support: 'full',
    infoOrder: 13,
  },
  {
    name: 'service-node',
    kind: 'text',
    default: '',
    help: 'Name of this node; overrides node.id of the bootstrap.',
    support: 'full',
    infoOrder: 14,
  },
  {
    name: 'service-zone',
    kind: 'text',
    default: '',
    help: 'Zone of this node; overrides node.locality.zone of the bootstrap.',
    support: 'full',
    infoOrder: 15,
  },
  {
    name: 'file-flush-interval-msec',
    kind: 'count',
    default: 10_000,
    help: 'Milliseconds after which buffered files such as access logs are flushed. Default: 10000.',
    support: 'full',
    infoOrder: 16,
    infoKey: 'file_flush_interval',
    infoForm: 'duration-ms',
  },
  {
    name: 'drain-time-s',
    kind: 'count',
    default: 600,
    help: 'Seconds in which connections drain when a listener goes, or is drained. Default: 600.',
    support: 'full',
    infoOrder: 17,
    infoKey: 'drain_time',
    infoForm: 'duration-s',
  },
  {
    name: 'drain-strategy',
    kind: 'choice',
    default: 'gradual',
    choices: ['gradual', 'immediate'],
    complaint: 'error: unknown drain-strategy',
    help: 'gradual: the share of requests that drain rises over the drain time. immediate: all from its start. Default: gradual.',
    support: 'full',
    infoOrder: 33,
    infoForm: 'pascal-case',
  },
  {
    name: 'shutdown-grace-s',
    kind: 'count',
    default: 10,
    help: 'Seconds that requests and connections have after SIGTERM, SIGINT or /quitquitquit; what is left is cut. Default: 10.',
    support: 'full',
  },
  {
    name: 'parent-shutdown-time-s',
    kind: 'count',
    default: 900,
    help: 'Seconds until a hot restart ends the parent process. Default: 900.',
    support: 'full',
    infoOrder: 18,
    infoKey: 'parent_shutdown_time',
    infoForm: 'duration-s',
  },
  {
    name: 'disable-hot-restart',
    kind: 'flag',
    help: 'Do without hot restart.',
    support: 'full',
    infoOrder: 22,
  },
  {
    name: 'enable-mutex-tracing',
    kind: 'flag',
    help: 'Count how long threads wait for processors, for GET /contention; they take no mutexes of one another.',
    support: 'full',
    infoOrder: 23,
  },
  {
    name: 'allow-unknown-fields',
    kind: 'flag',
    help: 'Older name of --allow-unknown-static-fields.',
    support: 'full',
  },
  {
    name: 'allow-unknown-static-fields',
    kind: 'flag',
    help: 'Warn of unknown fields in the bootstrap and count them instead of refusing it.',
    support: 'full',
    infoOrder: 5,
  },
  {
    name: 'reject-unknown-dynamic-fields',
    kind: 'flag',
    help: 'Refuse dynamic configuration with unknown fields.',
    support: 'full',
    infoOrder: 26,
  },
  {
    name: 'ignore-unknown-dynamic-fields',
    kind: 'flag',
    help: 'Neither warn of unknown fields in dynamic configuration nor count them.',
    support: 'full',
    infoOrder: 30,
  },
  {
    name: 'disable-extensions',
    kind: 'text',
    default: '',
    help: 'Extensions that configuration may not use: a comma-separated list of category/name, such as envoy.filters.http/envoy.filters.http.tap.',
    support: 'full',
    infoOrder: 28,
    infoKey: 'disabled_extensions',
    infoForm: 'comma-list',
  },
  {
    name: 'print-schema',
    kind: 'flag',
    help: 'Print the JSON schema of the bootstrap, for editors, and exit.',
    support: 'full',
  },
  { name: 'version', kind: 'flag', help: 'Print version and build information and exit.', support: 'full' },
  { name: 'help', flag: 'h', kind: 'flag', help: 'Print this text and exit.', support: 'full' },
  {
    name: 'enable-core-dump',
    kind: 'flag',
    help: 'Let the system write a core file when the process crashes (Linux), where its limit (ulimit -c) lets it.',
    support: 'full',
    infoOrder: 37,
  },
  {
    name: 'stats-tag',
    kind: 'texts',
    help: 'Tag on every stat, as tag:value. May be given several times with different tags.',
    support: 'full',
    infoOrder: 38,
  },
  {
    name: 'use-fake-symbol-table',
    kind: 'count',
    default: 0,
    help: 'Accepted for older start scripts; has no effect.',
    support: 'full',
  },
  {
    name: 'max-stats',
    kind: 'count',
    default: 16_384,
    help: 'Accepted for older start scripts: the number of stats has no limit of its own.',
    support: 'ignored',
  },
  {
    name: 'max-obj-name-len',
    kind: 'count',
    default: 60,
    help: 'Accepted for older start scripts: names have no limit of their own.',
    support: 'ignored',
  },
] as const satisfies readonly OptionRow[];

/** One value per option, by camel-case name; options not given have their default. */
export type ServerOptions = OptionValues<(typeof OPTIONS)[number]> & {
  /** --component-log-level, read. */
  readonly componentLogLevels: readonly ComponentLogLevel[];
};

export interface ComponentLogLevel {
  readonly component: string;
  readonly level: (typeof LOG_LEVELS)[number];
}

/** What an operator reads who gave neither --config-path nor --config-yaml. */
export const NO_CONFIG_MESSAGE = 'At least one of --config-path or --config-yaml should be given, and not be empty';

/** True when the command line names any configuration. */
export function hasConfiguration(options: Pick<ServerOptions, 'configPath' | 'configYaml'>): boolean {
  return options.configPath !== '' || options.configYaml !== '';
}
