// Tap message → settings of the tap filter. Only the admin interface can have it record: what a static configuration would write
// goes to files or services that this build does not write to.

import type { Conversion, HttpTapMessage } from '../../../config/index.ts';
import type { HttpFilterSettings } from '../../../snapshot/index.ts';
import type { TapFilterSettings } from './settings.ts';

/** Behind `http.<stat_prefix>.`. */
const RQ_TAPPED = 'tap.rq_tapped';

/** @param at path of the filter's configuration. */
export function convertTapFilter(message: object, _at: string, _conversion: Conversion): HttpFilterSettings {
  const { common_config: common, record_headers_received_time: recordsTimes } = message as HttpTapMessage;
  // Rules and the support table let nothing else through.
  const configId = common?.admin_config?.config_id ?? '';
  const settings: TapFilterSettings = { configId, recordsTimes, counter: RQ_TAPPED };
  return { name: 'filters.http.tap', settings, counters: [RQ_TAPPED], tapConfigId: configId };
}
