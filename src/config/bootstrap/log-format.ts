// application_log_config: the layout of the log's lines from the bootstrap, as text or as one JSON object a line, in the flags
// of --log-format, which it excludes.

import { describeUnknownLogFlags } from '../../base/log-flags.ts';
import type { Bootstrap } from '../proto/generated/messages.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { structToJson } from '../resources/struct.ts';
import type { LoadBootstrapInput } from './bootstrap-config.ts';

const AT = 'application_log_config.log_format';
/** Their messages would not be escaped as JSON wants it. */
const TEXT_FLAG = /%[-=]?\d*!?(v|_)/;

/** @returns undefined where the bootstrap says nothing of it. */
export function convertLogFormat(
  { application_log_config: config }: Pick<Bootstrap, 'application_log_config'>,
  { hasLogFormat = false, logFormatEscaped = false }: Pick<LoadBootstrapInput, 'hasLogFormat' | 'logFormatEscaped'>,
  faults: FaultSink,
): string | undefined {
  const format = config?.log_format ?? null;
  if (format === null) return undefined;
  if (hasLogFormat) faults.error(AT, 'cannot be combined with --log-format: only one of them can say how lines look');
  const isText = format.log_format !== 'json_format';
  const layout = isText ? (format.text_format ?? '') : JSON.stringify(structToJson(format.json_format!));
  const flags = describeUnknownLogFlags(layout);
  if (flags !== undefined) faults.warning(`${AT}.${isText ? 'text_format' : 'json_format'}`, flags);
  if (isText) return layout;
  const [, flag] = TEXT_FLAG.exec(layout.replaceAll('%%', '')) ?? [];
  if (flag !== undefined) faults.error(`${AT}.json_format`, `%${flag} cannot stand in JSON, where %j is the message`);
  if (logFormatEscaped) {
    faults.warning(`${AT}.json_format`, 'with --log-format-escaped no line is JSON: its quotes are escaped, too');
  }
  return layout;
}
