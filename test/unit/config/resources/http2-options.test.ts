import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { convertHttp2Options, DEFAULT_HTTP2_SETTINGS } from '../../../../src/config/resources/http2-options.ts';
import type { Http2ProtocolOptions } from '../../../../src/config/resources/messages.ts';
import type { Http2Settings } from '../../../../src/snapshot/index.ts';

const NOTHING_SAID: Http2ProtocolOptions = {
  hpack_table_size: null,
  max_concurrent_streams: null,
  initial_stream_window_size: null,
  initial_connection_window_size: null,
  allow_connect: false,
  allow_metadata: false,
  max_outbound_frames: null,
  max_outbound_control_frames: null,
  max_consecutive_inbound_frames_with_empty_payload: null,
  max_inbound_priority_frames_per_stream: null,
  max_inbound_window_update_frames_per_data_frame_sent: null,
  stream_error_on_invalid_http_messaging: false,
  custom_settings_parameters: [],
  override_stream_error_on_invalid_http_message: null,
  connection_keepalive: null,
  use_oghttp2_codec: null,
  max_metadata_size: null,
  enable_huffman_encoding: null,
};

function convert(said: Partial<Http2ProtocolOptions> | null): { settings: Http2Settings; errors: string[] } {
  const errors: string[] = [];
  const faults = {
    error: (at: string, text: string) => void errors.push(`${at}: ${text}`),
    warning: () => assert.fail(),
  };
  const message = said && { ...NOTHING_SAID, ...said };
  return { settings: convertHttp2Options(message, 'http2', faults), errors };
}

function custom(...parameters: readonly (readonly [identifier: number, value: number])[]) {
  return parameters.map(([identifier, value]) => ({ identifier: { value: identifier }, value: { value } }));
}

describe('HTTP/2 options', () => {
  it('have defaults, absent or empty', () => {
    assert.deepEqual(convert(null).settings, DEFAULT_HTTP2_SETTINGS);
    assert.deepEqual(convert({}).settings, DEFAULT_HTTP2_SETTINGS);
  });

  it('become settings, one for each field', () => {
    const { settings, errors } = convert({
      hpack_table_size: { value: 100_000 },
      max_concurrent_streams: { value: 2 },
      initial_stream_window_size: { value: 70_000 },
      initial_connection_window_size: { value: 80_000 },
      allow_connect: true,
      max_outbound_frames: { value: 5 },
      max_outbound_control_frames: { value: 6 },
      max_consecutive_inbound_frames_with_empty_payload: { value: 7 },
      max_inbound_priority_frames_per_stream: { value: 8 },
      max_inbound_window_update_frames_per_data_frame_sent: { value: 9 },
      stream_error_on_invalid_http_messaging: true,
      custom_settings_parameters: custom([6, 1000], [9, 10]),
      connection_keepalive: {
        interval: { seconds: 1, nanos: 0 },
        timeout: { seconds: 2, nanos: 0 },
        interval_jitter: { value: 50 },
        connection_idle_interval: { seconds: 3, nanos: 0 },
      },
      enable_huffman_encoding: { value: true },
    } as Partial<Http2ProtocolOptions>);
    assert.deepEqual(errors, []);
    assert.deepEqual(settings, {
      headerTableBytes: 65_536,
      maxConcurrentStreams: 2,
      streamWindowBytes: 70_000,
      connectionWindowBytes: 80_000,
      allowConnect: true,
      maxOutboundFrames: 5,
      maxOutboundControlFrames: 6,
      maxConsecutiveEmptyFrames: 7,
      maxPriorityFramesPerStream: 8,
      maxWindowUpdatesPerDataFrame: 9,
      isStreamErrorOnInvalidMessage: true,
      customSettings: [6, 1000, 9, 10],
      encodesHuffman: true,
      keepalive: { intervalMs: 1000, timeoutMs: 2000, jitterPercent: 50, idleIntervalMs: 3000 },
    });
  });

  it('prefer the newer word on messages with a fault', () => {
    const options = {
      stream_error_on_invalid_http_messaging: true,
      override_stream_error_on_invalid_http_message: { value: false },
    };
    assert.equal(convert(options).settings.isStreamErrorOnInvalidMessage, false);
  });

  it('take settings with fields of their own by number, too', () => {
    const { settings } = convert({
      custom_settings_parameters: custom([1, 0], [3, 4], [4, 70_000], [8, 1], [5, 16_384]),
    });
    assert.equal(settings.headerTableBytes, 0);
    assert.equal(settings.maxConcurrentStreams, 4);
    assert.equal(settings.streamWindowBytes, 70_000);
    assert.equal(settings.allowConnect, true);
    assert.deepEqual(settings.customSettings, [5, 16_384]);
  });

  const at = 'http2.custom_settings_parameters';
  for (const { name, options, error } of [
    {
      name: 'that is said by name and by number',
      options: { allow_connect: true, custom_settings_parameters: custom([8, 1]) },
      error: `${at}[0]: setting 8 is said by allow_connect already`,
    },
    {
      name: 'with two values',
      options: { custom_settings_parameters: custom([9, 1], [9, 1], [9, 2]) },
      error: `${at}[2]: setting 9 is 1 and 2`,
    },
    {
      name: 'for server push',
      options: { custom_settings_parameters: custom([2, 1]) },
      error: `${at}[0]: there is no server push`,
    },
    {
      name: 'for larger frames',
      options: { custom_settings_parameters: custom([5, 32_768]) },
      error: `${at}[0]: frames of 32768 bytes; 16384 is what is taken`,
    },
    {
      name: 'for a CONNECT between yes and no',
      options: { custom_settings_parameters: custom([8, 2]) },
      error: `${at}[0]: setting 8 is 2; 0 and 1 mean something`,
    },
    {
      name: 'for a window that is too small',
      options: { custom_settings_parameters: custom([4, 65_534]) },
      error: `${at}[0]: a window of 65534 bytes; 65535 to 2147483647 can be had`,
    },
  ]) {
    it(`refuse a setting ${name}`, () => assert.deepEqual(convert(options).errors, [error]));
  }
});
