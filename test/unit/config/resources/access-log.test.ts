import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { EXTENSIONS } from '../../../../src/extensions/control-registry.ts';
import type { AccessLogSettings } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  managerFaults,
  mustLoad,
  socketAddress,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';

const LISTENER = 'static_resources.listeners[0]';
const LOG = `${LISTENER}.filter_chains[0].filters[0].typed_config.access_log[0]`;
const LOGGERS = 'type.googleapis.com/envoy.extensions.access_loggers';
const DEFAULT_FORMAT_LENGTH = 31;

function fileLog(fields: JsonObject = {}, log: JsonObject = {}): JsonObject {
  const typed = { '@type': `${LOGGERS}.file.v3.FileAccessLog`, path: '/tmp/access.log', ...fields };
  return { name: 'envoy.access_loggers.file', typed_config: typed, ...log };
}

function logsOf(...access_log: JsonObject[]): readonly AccessLogSettings[] {
  const listener = listenerWith([httpFilter({ access_log })]);
  const { filter } = mustLoad(withListeners(listener)).listeners[0]!.filterChains[0]!;
  assert.ok(filter.kind === 'http-connection-manager');
  return filter.accessLogs;
}

function faultsOf(access_log: JsonObject, severity: 'error' | 'warning' = 'error'): string[] {
  return managerFaults({ access_log: [access_log] }, severity);
}

function filterOf(filter: JsonObject): AccessLogSettings['filter'] {
  return logsOf(fileLog({}, { filter }))[0]!.filter;
}

describe('an access log', () => {
  it('is written to a file in the default format when it names no other', () => {
    const [log] = logsOf(fileLog());
    assert.deepEqual(log!.destination, { kind: 'file', path: '/tmp/access.log' });
    assert.equal(log!.filter, null);
    const { content, omitEmptyValues } = log!.format;
    assert.equal(omitEmptyValues, false);
    assert.equal(content.kind, 'text');
    const segments = content.kind === 'text' ? content.segments : [];
    assert.equal(segments[0], '[');
    assert.deepEqual(segments[1], { operator: 'START_TIME', args: [], maxLength: 0 });
    assert.equal(segments.at(-1), '"\n');
    assert.equal(segments.length, DEFAULT_FORMAT_LENGTH);
  });

  it('whose path cannot be written is a fault with its reason, of the admin interface as well', () => {
    const asked: string[] = [];
    const findLogPathFault = (path: string): string | undefined => {
      asked.push(path);
      return path.endsWith('good.log') ? undefined : 'it is a folder';
    };
    const good = listenerWith([httpFilter({ access_log: [fileLog({ path: '/good.log' })] })]);
    const bad = listenerWith([httpFilter({})], { name: 'bad', access_log: [fileLog({ path: '/b' })] });
    const admin = { access_log_path: '/a', address: socketAddress('127.0.0.1', 0) };
    const result = load(
      { admin, ...withListeners(good, { ...bad, address: socketAddress('127.0.0.1', 1) }) },
      { findLogPathFault },
    );
    assert.deepEqual(faultTexts(result), [
      'admin.access_log_path: "/a" cannot be written: it is a folder',
      'static_resources.listeners[1].access_log[0].typed_config.path: "/b" cannot be written: it is a folder',
    ]);
    assert.deepEqual(asked, ['/a', '/good.log', '/b']);
    assert.deepEqual(faultTexts(load({ admin, ...withListeners(good) })), [], 'nobody looks unless told how');
  });

  it('goes to standard output or standard error', () => {
    const logs = logsOf(
      { name: 'out', typed_config: { '@type': `${LOGGERS}.stream.v3.StdoutAccessLog` } },
      { name: 'err', typed_config: { '@type': `${LOGGERS}.stream.v3.StderrAccessLog` } },
    );
    assert.deepEqual(
      logs.map(({ destination }) => destination.kind),
      ['stdout', 'stderr'],
    );
  });

  it('is left out, with a warning, by a build without its logger', () => {
    const { 'proxy.extensions.access_loggers.file.v3.FileAccessLog': _, ...accessLoggers } = EXTENSIONS.accessLoggers;
    const out = { name: 'out', typed_config: { '@type': `${LOGGERS}.stream.v3.StdoutAccessLog` } };
    const bootstrap = withListeners(listenerWith([httpFilter({ access_log: [fileLog(), out] })]));
    const result = load(bootstrap, { extensions: { ...EXTENSIONS, accessLoggers } });
    assert.deepEqual(faultTexts(result, 'warning'), [
      `${LOG}.typed_config: "envoy.access_loggers.file" is not supported by this build; this access log is not written`,
    ]);
    const { filter } = result.bootstrap!.listeners[0]!.filterChains[0]!;
    assert.ok(filter.kind === 'http-connection-manager');
    assert.deepEqual(
      filter.accessLogs.map(({ destination }) => destination.kind),
      ['stdout'],
    );
  });

  it('is understood in the older spellings', () => {
    const v2 = {
      '@type': 'type.googleapis.com/envoy.config.accesslog.v2.FileAccessLog',
      path: '/a',
      format: '%PROTOCOL%',
    };
    const byStruct = { name: 'envoy.file_access_log', config: { path: '/a', format: '%PROTOCOL%' } };
    const expected: AccessLogSettings = {
      destination: { kind: 'file', path: '/a' },
      format: {
        content: { kind: 'text', segments: [{ operator: 'PROTOCOL', args: [], maxLength: 0 }] },
        omitEmptyValues: false,
      },
      filter: null,
    };
    assert.deepEqual(logsOf({ name: 'envoy.file_access_log', typed_config: v2 }, byStruct), [expected, expected]);
  });

  it('belongs to connection managers, TCP proxies and listeners', () => {
    const access_log = [fileLog()];
    const { accessLogs, filterChains } = mustLoad(
      withListeners(listenerWith([tcpFilter({ access_log })], { access_log })),
    ).listeners[0]!;
    assert.equal(accessLogs.length, 1);
    const { filter } = filterChains[0]!;
    assert.equal(filter.kind === 'tcp-proxy' && filter.accessLogs.length, 1);
  });
});

describe('the format of an access log', () => {
  const formatOf = (log_format: JsonObject) => logsOf(fileLog({ log_format }))[0]!.format;
  const code = { kind: 'text', segments: [{ operator: 'RESPONSE_CODE', args: [], maxLength: 0 }] } as const;

  it('is text, as UTF-8, from the bootstrap or a file', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'weir-format-')), 'format');
    writeFileSync(file, 'é %RESPONSE_CODE%');
    const content = { kind: 'text', segments: ['\u00c3\u00a9 ', code.segments[0]] };
    assert.deepEqual(formatOf({ text_format: 'é %RESPONSE_CODE%' }).content, content);
    assert.deepEqual(formatOf({ text_format_source: { filename: file } }).content, content);
    assert.deepEqual(formatOf({ text_format_source: { inline_string: 'é %RESPONSE_CODE%' } }).content, content);
  });

  it('may name the extensions whose operators are there anyway', () => {
    const formatter = (name: string, type: string): JsonObject => ({
      name: `envoy.formatter.${name}`,
      typed_config: { '@type': `type.googleapis.com/envoy.extensions.formatter.${name}.v3.${type}` },
    });
    const log_format = {
      text_format_source: { inline_string: '%REQ_WITHOUT_QUERY(:PATH)%' },
      formatters: [formatter('req_without_query', 'ReqWithoutQuery'), formatter('metadata', 'Metadata')],
    };
    const bootstrap = withListeners(listenerWith([tcpFilter({ access_log: [fileLog({ log_format })] })]));
    assert.deepEqual(faultTexts(load(bootstrap), 'warning'), []);
    const segments = [{ operator: 'REQ_WITHOUT_QUERY', args: [':path'], maxLength: 0 }];
    assert.deepEqual(formatOf(log_format).content, { kind: 'text', segments });
  });

  it('is JSON with sorted keys, constants and nested values', () => {
    const json_format = { z: '%RESPONSE_CODE%', a: { list: ['%RESPONSE_CODE%', 1, true, null] } };
    const format = formatOf({ json_format, omit_empty_values: true });
    assert.deepEqual(format, {
      content: {
        kind: 'json',
        isTyped: true,
        root: {
          kind: 'object',
          entries: [
            [
              'a',
              {
                kind: 'object',
                entries: [
                  [
                    'list',
                    {
                      kind: 'list',
                      items: [
                        code,
                        { kind: 'constant', value: 1 },
                        { kind: 'constant', value: true },
                        { kind: 'constant', value: null },
                      ],
                    },
                  ],
                ],
              },
            ],
            ['z', code],
          ],
        },
      },
      omitEmptyValues: true,
    });
  });

  it('keeps types only where it is asked to, among the older fields', () => {
    const contentOf = (fields: JsonObject) => logsOf(fileLog(fields))[0]!.format.content;
    const root = { kind: 'object', entries: [['c', code]] };
    assert.deepEqual(contentOf({ json_format: { c: '%RESPONSE_CODE%' } }), { kind: 'json', root, isTyped: false });
    assert.deepEqual(contentOf({ typed_json_format: { c: '%RESPONSE_CODE%' } }), { kind: 'json', root, isTyped: true });
  });

  it('takes variables from the environment that the loader is given', () => {
    const listener = listenerWith([httpFilter({ access_log: [fileLog({ format: '%ENVIRONMENT(POD)%' })] })]);
    const loaded = mustLoad(withListeners(listener), { environment: { POD: 'web-1' } });
    const { filter } = loaded.listeners[0]!.filterChains[0]!;
    assert.ok(filter.kind === 'http-connection-manager');
    assert.deepEqual(filter.accessLogs[0]!.format.content, { kind: 'text', segments: ['web-1'] });
  });

  it('is refused with the operator that does not exist, wherever it stands', () => {
    const unknown = 'unknown command operator "NOPE"';
    assert.deepEqual(faultsOf(fileLog({ format: '%NOPE%' })), [`${LOG}.typed_config.format: ${unknown}`]);
    assert.deepEqual(faultsOf(fileLog({ log_format: { text_format: 'x%NOPE%' } })), [
      `${LOG}.typed_config.log_format.text_format: ${unknown}`,
    ]);
    assert.deepEqual(faultsOf(fileLog({ log_format: { json_format: { a: { b: ['%NOPE%'] } } } })), [
      `${LOG}.typed_config.log_format.json_format.a.b[0]: ${unknown}`,
    ]);
  });
});

describe('the filter of an access log', () => {
  it('compares status and duration', () => {
    const comparison = (op: string) => ({ comparison: { op, value: { default_value: 400, runtime_key: 'k' } } });
    assert.deepEqual(filterOf({ status_code_filter: comparison('GE') }), {
      kind: 'status-code',
      operator: 'GE',
      value: { key: 'k', default: 400 },
    });
    assert.deepEqual(filterOf({ duration_filter: comparison('LE') }), {
      kind: 'duration-ms',
      operator: 'LE',
      value: { key: 'k', default: 400 },
    });
  });

  it('joins others, looks at a header, at flags, at the type, or draws', () => {
    const header = { name: 'X-Kind', exact_match: 'a' };
    assert.deepEqual(
      filterOf({
        and_filter: { filters: [{ header_filter: { header } }, { response_flag_filter: { flags: ['UH'] } }] },
      }),
      {
        kind: 'and',
        filters: [
          {
            kind: 'header',
            header: {
              name: 'x-kind',
              test: { kind: 'exact', value: 'a', ignoresCase: false },
              isInverted: false,
              treatMissingAsEmpty: false,
            },
          },
          { kind: 'response-flags', flags: ['UH'] },
        ],
      },
    );
    const draw = {
      runtime_key: 'k',
      percent_sampled: { numerator: 5, denominator: 'TEN_THOUSAND' },
      use_independent_randomness: true,
    };
    assert.deepEqual(
      filterOf({ or_filter: { filters: [{ not_health_check_filter: {} }, { runtime_filter: draw }] } }),
      {
        kind: 'or',
        filters: [
          { kind: 'not-health-check' },
          { kind: 'fraction', fraction: { key: 'k', default: { numerator: 5, denominator: 10_000 } } },
        ],
      },
    );
    assert.deepEqual(filterOf({ runtime_filter: { runtime_key: 'k' } }), {
      kind: 'fraction',
      fraction: { key: 'k', default: { numerator: 0, denominator: 100 } },
    });
    assert.deepEqual(filterOf({ grpc_status_filter: { statuses: ['CANCELED', 'UNAVAILABLE'], exclude: true } }), {
      kind: 'grpc-status',
      statuses: [1, 14],
      isExcluded: true,
    });
    assert.deepEqual(filterOf({ log_type_filter: { types: ['DownstreamEnd'], exclude: true } }), {
      kind: 'log-type',
      types: ['DownstreamEnd'],
      isExcluded: true,
    });
  });

  it('is refused when this build lacks it, because more would be logged than was asked for', () => {
    const byCel = fileLog({}, { filter: { extension_filter: { name: 'cel' } } });
    assert.deepEqual(faultsOf(byCel), [
      `${LOG}.filter.extension_filter: extension_filter is not supported by this build: filters by CEL are left out: combine the others by and_filter and or_filter`,
    ]);
  });
});

it('a logger that this build lacks is left out with a warning', () => {
  const wasm = { name: 'envoy.access_loggers.wasm' };
  assert.deepEqual(faultsOf(wasm), []);
  assert.deepEqual(faultsOf(wasm, 'warning'), [
    `${LOG}: "envoy.access_loggers.wasm" is not supported by this build: file, stdout, stderr, http_grpc, tcp_grpc and open_telemetry are there; this access log is not written`,
  ]);
  assert.equal(logsOf(wasm, fileLog()).length, 1);
});
