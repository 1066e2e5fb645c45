import assert from 'node:assert/strict';
import { availableParallelism, cpus } from 'node:os';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LOG_COMPONENTS } from '../../../src/base/log-components.ts';
import { LOG_LEVELS } from '../../../src/base/log-levels.ts';
import {
  commandLineOptionsJson,
  hasConfiguration,
  parseCommandLine,
  type ServerOptions,
} from '../../../src/cli/index.ts';
import { defaultValue, type OptionRow } from '../../../src/cli/option-row.ts';
import { OPTIONS } from '../../../src/cli/options.ts';

const ROWS: readonly OptionRow[] = OPTIONS;
const UNREADABLE = "Couldn't read argument value from string";
const CONTEXT = {
  program: 'weir',
  version: 'abc/1.2.3/Clean/RELEASE/OpenSSL',
  hotRestartVersion: ({ disableHotRestart }: ServerOptions) => (disableHotRestart ? 'disabled' : '7.1'),
  environment: {},
};

function parse(...argv: string[]): ReturnType<typeof parseCommandLine> {
  return parseCommandLine(argv, CONTEXT);
}

function run(...argv: string[]): { options: ServerOptions; warnings: readonly string[] } {
  const outcome = parse(...argv);
  assert.equal(outcome.kind, 'run', outcome.kind === 'exit' ? outcome.stderr : '');
  return outcome as Extract<typeof outcome, { kind: 'run' }>;
}

function exit(...argv: string[]): { code: number; stdout: string; stderr: string } {
  const outcome = parse(...argv);
  assert.equal(outcome.kind, 'exit', `${argv.join(' ')} was accepted`);
  return outcome as Extract<typeof outcome, { kind: 'exit' }>;
}

describe('the command line', () => {
  it('has a default for every option', () => {
    const { options, warnings } = run();
    assert.deepEqual(warnings, []);
    assert.equal(options.mode, 'serve');
    assert.equal(options.concurrency, cpus().length);
    assert.equal(options.logLevel, 'info');
    assert.equal(options.logFormat, '[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v');
    assert.equal(options.fileFlushIntervalMsec, 10_000);
    assert.deepEqual([options.drainTimeS, options.parentShutdownTimeS], [600, 900]);
    assert.equal(hasConfiguration(options), false);
  });

  const accepted: [argv: string[], key: keyof ServerOptions, value: unknown][] = [
    [['-c', 'envoy.yaml'], 'configPath', 'envoy.yaml'],
    [['-cenvoy.yaml'], 'configPath', 'envoy.yaml'],
    [['-c=envoy.yaml'], 'configPath', 'envoy.yaml'],
    [['--config-path', 'envoy.yaml'], 'configPath', 'envoy.yaml'],
    [['--config-path=a=b.yaml'], 'configPath', 'a=b.yaml'],
    [['--config-yaml', '---\nadmin: {}\n'], 'configYaml', '---\nadmin: {}\n'],
    [['--config-yaml', '{"a": "\'b\'"}'], 'configYaml', '{"a": "\'b\'"}'],
    [['--config-yaml', "'quoted'"], 'configYaml', "'quoted'"],
    [['--config-yaml', '--mode'], 'configYaml', '--mode'],
    [['--config-yaml='], 'configYaml', ''],
    [['--mode', 'validate'], 'mode', 'validate'],
    [['--admin-address-path', '/tmp/admin'], 'adminAddressPath', '/tmp/admin'],
    [['--local-address-ip-version', 'v4'], 'localAddressIpVersion', 'v4'],
    [['--concurrency', '4'], 'concurrency', 4],
    [['--concurrency', '511'], 'concurrency', 511],
    [['--file-flush-interval-msec', '4294967295'], 'fileFlushIntervalMsec', 4_294_967_295],
    [['--concurrency', '0'], 'concurrency', 1],
    [['--concurrency=007'], 'concurrency', 7],
    [['-l', 'trace'], 'logLevel', 'trace'],
    [['--log-level', 'warn'], 'logLevel', 'warning'],
    [['--log-level', 'off'], 'logLevel', 'off'],
    [['--cpuset-threads'], 'cpusetThreads', true],
    [['--log-path', '/var/log/weir.log'], 'logPath', '/var/log/weir.log'],
    [['--log-format', '-%v-'], 'logFormat', '-%v-'],
    [['--log-format', ' 12 '], 'logFormat', ' 12 '],
    [['--log-format-escaped'], 'logFormatEscaped', true],
    [['--restart-epoch', '0'], 'restartEpoch', 0],
    [['--service-cluster', 'edge'], 'serviceCluster', 'edge'],
    [['--service-node', '0x10'], 'serviceNode', '0x10'],
    [['--service-zone', 'true'], 'serviceZone', 'true'],
    [['--disable-hot-restart'], 'disableHotRestart', true],
    [['--allow-unknown-static-fields'], 'allowUnknownStaticFields', true],
    [['--reject-unknown-dynamic-fields'], 'rejectUnknownDynamicFields', true],
    [['--ignore-unknown-dynamic-fields'], 'ignoreUnknownDynamicFields', true],
    [['--use-fake-symbol-table', '0'], 'useFakeSymbolTable', 0],
  ];
  for (const [argv, key, value] of accepted) {
    it(`reads ${JSON.stringify(argv)}`, () => {
      const { options, warnings } = run(...argv);
      assert.deepEqual(options[key], value);
      assert.deepEqual(warnings, []);
    });
  }

  it('reads the levels of components', () => {
    const { options } = run('--component-log-level', 'upstream:debug,http:warn');
    assert.equal(options.componentLogLevel, 'upstream:debug,http:warn');
    assert.deepEqual(options.componentLogLevels, [
      { component: 'upstream', level: 'debug' },
      { component: 'http', level: 'warning' },
    ]);
  });

  it('reads the levels of source files where they have loggers of their own', () => {
    const { options } = run('--enable-fine-grain-logging', '--component-log-level', 'src/log/*:debug,router:warn');
    assert.deepEqual(options.componentLogLevels, [
      { component: 'src/log/*', level: 'debug' },
      { component: 'router', level: 'warning' },
    ]);
  });

  const complaints: [argv: string[], stderr: string][] = [
    [['--mode', 'fast'], "error: unknown mode 'fast'; allowed: serve, validate, init_only"],
    [['--local-address-ip-version', 'v5'], "error: unknown IP address version 'v5'; allowed: v4, v6"],
    [['-l', 'loud'], `error: invalid log level specified 'loud'; allowed: ${LOG_LEVELS.join(', ')}`],
    [['-l', ''], `error: invalid log level specified ''; allowed: ${LOG_LEVELS.join(', ')}`],
    [
      ['--component-log-level', 'http:loud'],
      `error: invalid log level specified 'loud'; allowed: ${LOG_LEVELS.join(', ')}`,
    ],
    [
      ['--component-log-level', 'http'],
      "error: component log level not correctly specified 'http'; allowed: component:level",
    ],
    [
      ['--component-log-level', 'http:info:x'],
      "error: component log level not correctly specified 'http:info:x'; allowed: component:level",
    ],
    [
      ['--component-log-level', 'http:info,'],
      "error: component log level not correctly specified ''; allowed: component:level",
    ],
    [['--component-log-level', 'htpp:info'], "error: invalid component specified 'htpp'; did you mean 'http'?"],
    [
      ['--component-log-level', 'xyzzy:info'],
      `error: invalid component specified 'xyzzy'; allowed: ${LOG_COMPONENTS.join(', ')}`,
    ],
    [
      ['--use-dynamic-base-id', '--restart-epoch', '1'],
      'error: cannot use --restart-epoch=1 with --use-dynamic-base-id',
    ],
    [['--socket-path', '/tmp/s', '--socket-mode', '9'], "error: invalid socket-mode '9'; allowed: octal, up to 7777"],
    [['--socket-mode', '600'], "error: socket-mode '600' needs a socket-path outside of the abstract namespace"],
    [['--socket-mode', '644'], "error: socket-mode '644' needs a socket-path outside of the abstract namespace"],
    [
      ['--socket-path', '@x', '--socket-mode', '644'],
      "error: socket-mode '644' needs a socket-path outside of the abstract namespace",
    ],
    [['--drain-strategy', 'slow'], "error: unknown drain-strategy 'slow'; allowed: gradual, immediate"],
    [['--stats-tag', 'x'], "error: misformatted stats-tag 'x'; allowed: tag:value"],
    [
      ['--stats-tag', 'a-b:c'],
      "error: misformatted stats-tag 'a-b:c' contains invalid char in 'a-b'; allowed: letters and digits",
    ],
    [
      ['--stats-tag', 'a:b.c'],
      "error: misformatted stats-tag 'a:b.c' contains invalid char in 'b.c'; allowed: all but '.'",
    ],
    [['--stats-tag', 'a:1', '--stats-tag', 'a:2'], "error: stats-tag 'a' is given twice"],
    [
      ['--max-stats', '100000001'],
      "error: the 'max-stats' value specified (100000001) is more than the maximum value of 100M",
    ],
    [
      ['--max-obj-name-len', '59'],
      "error: the 'max-obj-name-len' value specified (59) is less than the minimum value of 60",
    ],
    [['--concurrency', '512'], 'error: --concurrency 512 exceeds the limit 511'],
    [['--concurrency', '4294967295'], 'error: --concurrency 4294967295 exceeds the limit 511'],
  ];
  for (const [argv, stderr] of complaints) {
    it(`refuses ${JSON.stringify(argv)}`, () => {
      assert.deepEqual(exit(...argv), { kind: 'exit', code: 1, stdout: '', stderr: `${stderr}\n` });
    });
  }

  const malformed: [argv: string[], argument: string, reason: string][] = [
    [['--nonsense'], '--nonsense', "Couldn't find match for argument"],
    [
      ['--no-cpuset-threads'],
      '--no-cpuset-threads',
      "Couldn't find match for argument; did you mean --cpuset-threads?",
    ],
    [['--logLevel', 'info'], '--logLevel', "Couldn't find match for argument; did you mean --log-level?"],
    [['--log-leve=info'], '--log-leve=info', "Couldn't find match for argument; did you mean --log-level?"],
    [['-mode', 'validate'], '-mode', "Couldn't find match for argument; did you mean --mode?"],
    [['envoy.yaml'], 'envoy.yaml', "Couldn't find match for argument"],
    [['-x'], '-x', "Couldn't find match for argument"],
    [['-'], '-', "Couldn't find match for argument"],
    [['--'], '--', "Couldn't find match for argument"],
    [['--version=1'], '--version=1', "Couldn't find match for argument"],
    [['--__proto__', '1'], '--__proto__', "Couldn't find match for argument"],
    [['-l'], '-l (--log-level)', 'Missing a value for this argument!'],
    [['--concurrency'], '(--concurrency)', 'Missing a value for this argument!'],
    [['--concurrency', 'two'], '(--concurrency)', `${UNREADABLE} 'two'; allowed: a whole number from 0 to 511`],
    [['--concurrency', '-1'], '(--concurrency)', `${UNREADABLE} '-1'; allowed: a whole number from 0 to 511`],
    [['--concurrency', '1.5'], '(--concurrency)', `${UNREADABLE} '1.5'; allowed: a whole number from 0 to 511`],
    [['--concurrency', ''], '(--concurrency)', `${UNREADABLE} ''; allowed: a whole number from 0 to 511`],
    [
      ['--drain-time-s', '4294967296'],
      '(--drain-time-s)',
      `${UNREADABLE} '4294967296'; allowed: a whole number from 0 to 4294967295`,
    ],
    [['-l', 'info', '--log-level', 'debug'], '-l (--log-level)', 'Argument already set!'],
    [['--cpuset-threads', '--cpuset-threads'], '(--cpuset-threads)', 'Argument already set!'],
  ];
  for (const [argv, argument, reason] of malformed) {
    it(`cannot read ${JSON.stringify(argv)}`, () => {
      const { code, stdout, stderr } = exit(...argv);
      assert.deepEqual([code, stdout], [1, '']);
      assert.ok(
        stderr.startsWith(
          `PARSE ERROR: Argument: ${argument}\n             ${reason}\n\nBrief USAGE: \n   weir  [-c <string>] `,
        ),
        stderr,
      );
      assert.ok(stderr.endsWith(`\n\nFor complete USAGE and HELP type: \n   weir --help\n\n${reason}\n`), stderr);
    });
  }

  it('prints the version', () => {
    const text = '\nweir  version: abc/1.2.3/Clean/RELEASE/OpenSSL\n\n';
    assert.deepEqual(exit('--version'), { kind: 'exit', code: 0, stdout: text, stderr: '' });
  });

  it('prints the hot restart version', () => {
    assert.deepEqual(exit('--hot-restart-version'), { kind: 'exit', code: 0, stdout: '', stderr: '7.1' });
    assert.equal(exit('--hot-restart-version', '--disable-hot-restart').stderr, 'disabled');
  });

  it('takes the restart epoch of a restart wrapper where nobody gives another', () => {
    const epoch = (...argv: string[]): unknown => {
      const outcome = parseCommandLine(argv, { ...CONTEXT, environment: { RESTART_EPOCH: '3' } });
      return outcome.kind === 'run' ? outcome.options.restartEpoch : outcome.stderr;
    };
    assert.equal(epoch(), 3);
    assert.equal(epoch('--restart-epoch', '1'), 1);
    assert.match(String(epoch('--use-dynamic-base-id')), /cannot use --restart-epoch=3/);
  });

  it('says where a bad restart epoch comes from', () => {
    const problem = (environment: Record<string, string>, ...argv: string[]): string => {
      const outcome = parseCommandLine(argv, { ...CONTEXT, environment });
      return outcome.kind === 'exit' ? outcome.stderr : '';
    };
    assert.match(problem({ RESTART_EPOCH: 'x' }), /string 'x'.*; RESTART_EPOCH of the environment has it\n/);
    assert.doesNotMatch(problem({ RESTART_EPOCH: '1' }, '--restart-epoch', 'x'), /environment/);
  });

  it('explains every option in its help', () => {
    const { code, stdout, stderr } = exit('-h');
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(exit('--help').stdout, stdout);
    assert.ok(stdout.startsWith('\nUSAGE: \n\n   weir  [-c <string>] [--config-yaml <string>] '), stdout);
    assert.ok(stdout.endsWith('\n\n\n   weir\n\n'), JSON.stringify(stdout.slice(-40)));
    const words = stdout.replace(/\s+/g, ' ');
    for (const row of ROWS) {
      assert.ok(words.includes(`--${row.name}`), row.name);
      assert.ok(words.includes(row.help.replace(/\s+/g, ' ')), row.help);
      if (row.kind === 'count' && row.max !== undefined) assert.ok(words.includes(`${row.help} At most ${row.max}.`));
    }
    for (const line of stdout.split('\n')) assert.ok(line.length <= 75, line);
  });

  it('warns by name of each option that has no effect', () => {
    for (const row of ROWS.filter(({ support }) => support !== 'full')) {
      const value = row.kind === 'flag' ? [] : ['77'];
      const warning = `--${row.name} is not supported by this build and has no effect`;
      assert.ok(run(`--${row.name}`, ...value).warnings.includes(warning), row.name);
    }
  });

  it('says nothing of an unsupported option that is given its default', () => {
    for (const row of ROWS.filter(({ support, kind }) => support !== 'full' && kind !== 'flag' && kind !== 'texts')) {
      const { warnings } = run(`--${row.name}`, String(defaultValue(row)));
      assert.deepEqual(warnings, [], row.name);
    }
  });

  it('takes the older name for tolerating unknown fields, and says so', () => {
    const { options, warnings } = run('--allow-unknown-fields');
    assert.equal(options.allowUnknownStaticFields, true);
    assert.deepEqual(warnings, ['--allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead.']);
  });

  it('warns of what can hardly be meant: flags of log lines that are none, tags without a value', () => {
    const [flags, ...others] = run('--log-format', '%l %Q %v').warnings;
    assert.match(
      flags!,
      /^--log-format: '%Q' is no flag and stays in each line as written; flags are % with one of v_j/,
    );
    assert.deepEqual(others, []);
    assert.deepEqual(run('--stats-tag', 'a:', '--stats-tag', 'b:c').warnings, [
      "--stats-tag 'a:' gives its tag an empty value, which many readers of stats take for none",
    ]);
  });

  it('warns of a parent that a hot restart ends before it has drained', () => {
    const times = (drain: string, shutdown: string, ...more: string[]): readonly string[] =>
      run('--drain-time-s', drain, '--parent-shutdown-time-s', shutdown, ...more).warnings;
    assert.deepEqual(times('60', '61'), []);
    assert.deepEqual(times('60', '60', '--disable-hot-restart'), []);
    assert.match(times('60', '60').join(), /^--drain-time-s 60 is not less than --parent-shutdown-time-s 60: /);
    // The default of the other counts as well.
    assert.match(run('--parent-shutdown-time-s', '90').warnings.join(), /^--drain-time-s 600 is not less than/);
  });

  it('takes the number of workers from the CPU set where it is told to', () => {
    assert.equal(run('--cpuset-threads').options.concurrency, availableParallelism());
  });

  it('lets a given concurrency win over the CPU set', () => {
    const { options, warnings } = run('--cpuset-threads', '--concurrency', '3');
    assert.equal(options.concurrency, 3);
    assert.deepEqual(warnings, [
      'Both --concurrency and --cpuset-threads options are set; not applying --cpuset-threads.',
    ]);
  });

  it('never throws, whatever the arguments', () => {
    const word = fc.oneof(
      fc.constantFrom(...ROWS.map(({ name }) => `--${name}`), '-l', '-c', '-h', 'info', '0', '--', '=', 'a:b'),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 5 }), (argv) => {
        const outcome = parse(...argv);
        if (outcome.kind === 'exit' && outcome.code === 1) assert.notEqual(outcome.stderr, '');
      }),
    );
  });
});

describe('the command line in /server_info', () => {
  it('shows every option with the reference keys, order and forms', () => {
    const argv = ['-c', 'a.yaml', '--concurrency', '2', '-l', 'warn', '--file-flush-interval-msec', '500'];
    const { options } = run(...argv, '--base-id', '3', '--mode', 'validate', '--stats-tag', 'zone:eu');
    assert.deepEqual(Object.entries(commandLineOptionsJson(options)), [
      ['base_id', '3'],
      ['concurrency', 2],
      ['config_path', 'a.yaml'],
      ['config_yaml', ''],
      ['allow_unknown_static_fields', false],
      ['admin_address_path', ''],
      ['local_address_ip_version', 'v4'],
      ['log_level', 'warning'],
      ['component_log_level', ''],
      ['log_format', '[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v'],
      ['log_path', ''],
      ['hot_restart_version', false],
      ['service_cluster', ''],
      ['service_node', ''],
      ['service_zone', ''],
      ['file_flush_interval', '0.500s'],
      ['drain_time', '600s'],
      ['parent_shutdown_time', '900s'],
      ['mode', 'Validate'],
      ['disable_hot_restart', false],
      ['enable_mutex_tracing', false],
      ['restart_epoch', 0],
      ['cpuset_threads', false],
      ['reject_unknown_dynamic_fields', false],
      ['log_format_escaped', false],
      ['disabled_extensions', []],
      ['ignore_unknown_dynamic_fields', false],
      ['use_dynamic_base_id', false],
      ['base_id_path', ''],
      ['drain_strategy', 'Gradual'],
      ['enable_fine_grain_logging', false],
      ['socket_path', '@proxy_domain_socket'],
      ['socket_mode', 0],
      ['enable_core_dump', false],
      ['stats_tag', ['zone:eu']],
    ]);
  });

  it('shows modes and strategies as the interface spells them', () => {
    const { options } = run('--mode', 'init_only', '--drain-strategy', 'immediate');
    const { mode, drain_strategy: strategy } = commandLineOptionsJson(options);
    assert.deepEqual([mode, strategy], ['InitOnly', 'Immediate']);
  });

  it('shows the mode of a socket outside of the abstract namespace as a number', () => {
    const { options } = run('--socket-path', '/tmp/s', '--socket-mode', '640');
    assert.equal(commandLineOptionsJson(options).socket_mode, 0o640);
  });
});
