// Support rows of what is posted to /tap.

import { SUPPORT } from '../support/index.ts';
import { STREAMED_TAP_FORMATS } from '../support/table/tap.ts';
import { rejected, type SupportTable, supported } from '../support/verdict.ts';

/** With the rows of a bootstrap, most of whose messages are in it; the sinks are others. */
export const TAP_SUPPORT: SupportTable = {
  ...SUPPORT,
  'proxy.admin.v3.TapRequest': { otherwise: rejected(), fields: { config_id: supported(), tap_config: supported() } },
  'proxy.config.tap.v3.OutputSink': {
    otherwise: rejected(),
    fields: { format: STREAMED_TAP_FORMATS, streaming_admin: supported(), buffered_admin: supported() },
  },
  'proxy.config.tap.v3.StreamingAdminSink': { otherwise: rejected(), fields: {} },
  'proxy.config.tap.v3.BufferedAdminSink': {
    otherwise: rejected(),
    fields: { max_traces: supported(), timeout: supported() },
  },
};
