// ProxyProtocolConfig messages → the PROXY header with which connections to an upstream begin.

import { MAX_TLV_BYTES, type ProxyHeaderSettings, tlv } from '../../base/proxy-header.ts';
import { ProxyProtocolConfig_Version as Version } from '../proto/generated/enums.ts';
import type { FaultSink } from './fault-sink.ts';
import type { ProxyProtocolConfig } from './messages.ts';
import { convertPassedTlvs } from './proxy-tlvs.ts';

export function convertProxyHeader(
  { version, added_tlvs: added, pass_through_tlvs: passed }: ProxyProtocolConfig,
  at: string,
  faults: FaultSink,
): ProxyHeaderSettings {
  if (version === Version.V1) {
    const noRoom = 'version 1 has no room for them';
    if (added.length > 0) faults.warning(`${at}.added_tlvs`, noRoom);
    if (passed !== null) faults.warning(`${at}.pass_through_tlvs`, noRoom);
    return { version: 1, tlvs: '' };
  }
  // An empty value is no Buffer.
  const text = added.map(({ type, value }) => tlv(type, Buffer.from(value)).toString('hex')).join('');
  const length = text.length / 2;
  if (length > MAX_TLV_BYTES)
    faults.error(`${at}.added_tlvs`, `take ${length} bytes; there is room for ${MAX_TLV_BYTES}`);
  return { version: 2, tlvs: text, ...convertPassedTlvs(passed) };
}
