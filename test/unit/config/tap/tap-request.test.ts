import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readTapOrder, type TapOrder } from '../../../../src/config/index.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';

function request(tapConfig: JsonObject = {}, output: JsonObject = {}): JsonObject {
  const sinks = [{ streaming_admin: {} }];
  return {
    config_id: 'edge',
    tap_config: { match: { any_match: true }, output_config: { sinks, ...output }, ...tapConfig },
  };
}

function orderOf(message: JsonObject): TapOrder {
  const read = readTapOrder(JSON.stringify(message));
  assert.ok('order' in read, JSON.stringify(read));
  return read.order;
}

function refusalOf(message: JsonObject | string): string {
  const read = readTapOrder(typeof message === 'string' ? message : JSON.stringify(message));
  assert.ok('refusal' in read);
  return read.refusal.replaceAll(/body:\d+:\d+: /g, '');
}

describe('what is posted to /tap', () => {
  it('has defaults', () => {
    assert.deepEqual(orderOf(request()), {
      settings: {
        configId: 'edge',
        match: { kind: 'any' },
        maxRequestBytes: 1024,
        maxResponseBytes: 1024,
        isStreamed: false,
        enabled: null,
      },
      format: 'json-bytes',
      collects: null,
    });
  });

  it('says how much, in which form and for how long', () => {
    const output = {
      sinks: [{ format: 'PROTO_BINARY_LENGTH_DELIMITED', buffered_admin: { max_traces: 5, timeout: '1.5s' } }],
      max_buffered_rx_bytes: 7,
      max_buffered_tx_bytes: 16_777_216,
      streaming: true,
    };
    const enabled = { default_value: { numerator: 3, denominator: 'TEN_THOUSAND' }, runtime_key: 'tap.share' };
    const { settings, format, collects } = orderOf(request({ tap_enabled: enabled }, output));
    assert.equal(format, 'binary-delimited');
    assert.deepEqual(collects, { mostTraces: 5, timeoutMs: 1500 });
    assert.deepEqual([settings.maxRequestBytes, settings.maxResponseBytes, settings.isStreamed], [7, 16_777_216, true]);
    assert.deepEqual(settings.enabled, { key: 'tap.share', default: { numerator: 3, denominator: 10_000 } });
    const text = request({}, { sinks: [{ format: 'JSON_BODY_AS_STRING', streaming_admin: {} }] });
    assert.equal(orderOf(text).format, 'json-text');
  });

  it('has conditions within conditions', () => {
    const headers = { headers: [{ name: 'X-A', exact_match: '1' }] };
    const body = { bytes_limit: 9, patterns: [{ string_match: 'é' }, { binary_match: 'AP8=' }] };
    const match = {
      or_match: {
        rules: [
          { and_match: { rules: [{ http_request_headers_match: headers }, { http_request_trailers_match: headers }] } },
          { not_match: { http_response_headers_match: headers } },
          { http_response_trailers_match: headers },
          { http_request_generic_body_match: body },
          { http_response_generic_body_match: { patterns: [{ string_match: 'x' }] } },
        ],
      },
    };
    const wanted = [
      {
        name: 'x-a',
        test: { kind: 'exact', value: '1', ignoresCase: false },
        isInverted: false,
        treatMissingAsEmpty: false,
      },
    ];
    assert.deepEqual(orderOf(request({ match })).settings.match, {
      kind: 'or',
      rules: [
        {
          kind: 'and',
          rules: [
            { kind: 'headers', of: 'request', headers: wanted },
            { kind: 'trailers', of: 'request', headers: wanted },
          ],
        },
        { kind: 'not', rule: { kind: 'headers', of: 'response', headers: wanted } },
        { kind: 'trailers', of: 'response', headers: wanted },
        { kind: 'body', of: 'request', limitBytes: 9, patterns: [Uint8Array.of(0xc3, 0xa9), Uint8Array.of(0, 0xff)] },
        { kind: 'body', of: 'response', limitBytes: 0, patterns: [Uint8Array.of(0x78)] },
      ],
    });
  });

  it('may be YAML, and of the older generation', () => {
    const text =
      'config_id: edge\ntap_config:\n  match_config: {any_match: true}\n  output_config: {sinks: [{streaming_admin: {}}]}\n';
    const read = readTapOrder(text);
    assert.ok('order' in read);
    assert.deepEqual(read.order.settings.match, { kind: 'any' });
  });

  const refused: [name: string, message: JsonObject | string, refusal: RegExp][] = [
    ['no map', '- 1', /^body: .*|^top level/],
    ['no syntax', '{', /./],
    ['an unknown field', { ...request(), more: 1 }, /more/],
    ['no config_id', { ...request(), config_id: '' }, /^config_id: /],
    ['no tap_config', { config_id: 'edge' }, /tap_config/],
    ['no output', { config_id: 'edge', tap_config: { match: { any_match: true } } }, /output_config/],
    ['no condition', request({ match: null }), /^tap_config\.match: is required\n$/],
    [
      'two conditions',
      request({ match_config: { any_match: true } }),
      /^tap_config\.match_config: is set together with match\n$/,
    ],
    ['an empty condition', request({ match: {} }), /tap_config\.match/],
    ['a set of one', request({ match: { and_match: { rules: [{ any_match: true }] } } }), /rules/],
    ['no pattern', request({ match: { http_request_generic_body_match: {} } }), /patterns/],
    [
      'an empty pattern',
      request({ match: { http_request_generic_body_match: { patterns: [{ string_match: '' }] } } }),
      /patterns/,
    ],
    [
      'a bad regex',
      request({
        match: { http_request_headers_match: { headers: [{ name: 'a', safe_regex_match: { regex: '(' } }] } },
      }),
      /^tap_config\.match\.http_request_headers_match\.headers\[0\]/,
    ],
    ['no sink', request({}, { sinks: [] }), /sinks/],
    ['two sinks', request({}, { sinks: [{ streaming_admin: {} }, { streaming_admin: {} }] }), /sinks/],
    [
      'a file',
      request({}, { sinks: [{ file_per_tap: { path_prefix: '/tmp/x' } }] }),
      /file_per_tap is not supported by this build/,
    ],
    [
      'a service',
      request({}, { sinks: [{ streaming_grpc: { grpc_service: { envoy_grpc: { cluster_name: 'x' } } } }] }),
      /streaming_grpc is not supported by this build/,
    ],
    [
      'another form',
      request({}, { sinks: [{ format: 'PROTO_TEXT', streaming_admin: {} }] }),
      /format PROTO_TEXT is not supported by this build/,
    ],
    ['no traces', request({}, { sinks: [{ buffered_admin: { max_traces: 0 } }] }), /max_traces/],
    [
      'too much',
      request({}, { max_buffered_rx_bytes: 16_777_217 }),
      /^tap_config\.output_config\.max_buffered_rx_bytes: 16777217 exceeds the limit 16777216\n$/,
    ],
    [
      'too much of responses',
      request({}, { max_buffered_tx_bytes: 16_777_217 }),
      /^tap_config\.output_config\.max_buffered_tx_bytes: 16777217 exceeds/,
    ],
    ['too deep', request({ match: nested(65) }), /conditions may be 64 deep\n$/],
  ];
  for (const [name, message, refusal] of refused) {
    it(`is refused with ${name}`, () => {
      assert.match(refusalOf(message), refusal);
    });
  }

  it('may be as deep as it may', () => {
    assert.equal(orderOf(request({ match: nested(64) })).settings.match.kind, 'not');
  });
});

/** @param depth of conditions, the innermost included. */
function nested(depth: number): JsonObject {
  let match: JsonObject = { any_match: true };
  for (let level = 1; level < depth; level += 1) match = { not_match: match };
  return match;
}
