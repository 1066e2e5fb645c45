// Tap message → settings of the tap filter: what the admin interface can have it record, or what it writes to files by itself.

import {
  type Conversion,
  convertTapConfig,
  type HttpFilterManifest,
  type HttpTapMessage,
  rejected,
  supported,
  type TapConfig,
  warned,
} from '../../../config/index.ts';
import type { HttpFilterSettings, TapSession } from '../../../snapshot/index.ts';
import type { TapFilterSettings } from './settings.ts';

/** Behind `http.<stat_prefix>.`. */
const RQ_TAPPED = 'tap.rq_tapped';

export const TAP: HttpFilterManifest = {
  support: {
    'proxy.extensions.filters.http.tap.v3.Tap': {
      otherwise: rejected(),
      fields: {
        common_config: supported(),
        record_headers_received_time: supported(),
        record_downstream_connection: warned(
          'traces have no addresses: access logs tell them, %DOWNSTREAM_REMOTE_ADDRESS%',
        ),
        record_upstream_connection: warned(
          'traces have no addresses: access logs tell them, %UPSTREAM_REMOTE_ADDRESS%',
        ),
      },
    },
    'proxy.extensions.common.tap.v3.CommonExtensionConfig': {
      otherwise: rejected(),
      fields: { admin_config: supported(), static_config: supported() },
    },
    'proxy.extensions.common.tap.v3.AdminConfig': { otherwise: rejected(), fields: { config_id: supported() } },
  },
  convert: convertTapFilter,
};

function convertTapFilter(message: object, at: string, { faults }: Conversion): HttpFilterSettings {
  const { common_config: common, record_headers_received_time: recordsTimes } = message as HttpTapMessage;
  // Rules and the support table let nothing else through.
  const configId = common?.admin_config?.config_id ?? '';
  const { static_config: config = null } = common ?? {};
  const own = config === null ? null : ownSession(config, `${at}.common_config.static_config`, faults);
  const settings: TapFilterSettings = { configId, own, recordsTimes, counter: RQ_TAPPED };
  const filter = { name: 'filters.http.tap', settings, counters: [RQ_TAPPED] };
  return own === null ? { ...filter, tapConfigId: configId } : filter;
}

function ownSession(config: TapConfig, at: string, faults: Conversion['faults']): TapSession {
  const { settings, format, sink } = convertTapConfig(config, '', at, faults);
  if (settings.isStreamed && format === 'binary') {
    const text = 'PROTO_BINARY does not say where a piece ends; with streaming, use PROTO_BINARY_LENGTH_DELIMITED';
    faults.error(`${at}.output_config.sinks[0].format`, text);
  }
  return { id: 0, settings, files: { pathPrefix: sink.file_per_tap?.path_prefix ?? '', format } };
}
