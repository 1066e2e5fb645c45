// The body of POST /tap → what is to be recorded, and in which form it goes to whoever asked.

import type { TapFormat, TapSettings } from '../../snapshot/index.ts';
import { DocumentFaults } from '../bootstrap/document-faults.ts';
import { formatFault, hasErrors } from '../fault.ts';
import { FaultList } from '../fault-list.ts';
import { unpackAny } from '../proto/any.ts';
import type { OutputSink, TapRequest } from '../proto/generated/messages.ts';
import { int64ToNumber } from '../proto/int64.ts';
import { loadMessage } from '../proto/load-message.ts';
import { protoSchema } from '../proto/root.ts';
import { Validator } from '../proto/rules/validator.ts';
import { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { durationMsOr } from '../resources/units.ts';
import { SupportCheck } from '../support/index.ts';
import { convertTapConfig } from './tap-config.ts';
import { TAP_SUPPORT } from './tap-support.ts';

export interface TapOrder {
  readonly settings: TapSettings;
  readonly format: TapFormat;
  /** Null to have each trace as it comes; otherwise all together, when there are as many or the time is over. */
  readonly collects: { readonly mostTraces: number; readonly timeoutMs: number } | null;
}

export type TapOrderResult = { readonly order: TapOrder } | { readonly refusal: string };

const TYPE = 'proxy.admin.v3.TapRequest';
/** @param text YAML or JSON. */
export function readTapOrder(text: string): TapOrderResult {
  const list = new FaultList();
  const order = readOrder(text, list);
  if (order !== undefined && !hasErrors(list.all)) return { order };
  const errors = list.all.filter(({ severity }) => severity === 'error');
  return { refusal: errors.map((fault) => `${formatFault({ ...fault, file: 'body' })}\n`).join('') };
}

function readOrder(text: string, list: FaultList): TapOrder | undefined {
  const schema = protoSchema();
  const type = schema.messageType(TYPE);
  const unknownFields = new UnknownFieldPolicy('reject');
  const loaded = loadMessage(type, { configPath: '', configYaml: text }, { faults: list, unknownFields, schema });
  if (loaded === undefined) return undefined;
  const { message, generation, document } = loaded;
  const faults = new DocumentFaults(document, list);
  new Validator().validate({ type, message, generation }, '', {
    report: (at, fault) => faults.error(at, fault),
    unpack: (any) => unpackAny(any, schema),
  });
  new SupportCheck(TAP_SUPPORT, (name) => schema.messageType(name)).check(TYPE, message, '', faults);
  return list.hasErrors ? undefined : convertOrder(message as unknown as TapRequest, faults);
}

/** What rules and support have let through. */
function convertOrder({ config_id: configId, tap_config: config }: TapRequest, faults: FaultSink): TapOrder {
  const { settings, format, sink } = convertTapConfig(config!, configId, 'tap_config', faults);
  return { settings, format, collects: convertCollecting(sink) };
}

function convertCollecting({ buffered_admin: buffered }: OutputSink): TapOrder['collects'] {
  if (buffered === null) return null;
  return { mostTraces: int64ToNumber(buffered.max_traces), timeoutMs: durationMsOr(buffered.timeout, 0) };
}
