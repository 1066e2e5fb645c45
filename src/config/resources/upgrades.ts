// The upgrade_configs of connection managers and routes.

import type { ProxyHeaderSettings } from '../../base/proxy-header.ts';
import type { ForwardAction, RouteUpgrade } from '../../snapshot/index.ts';
import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';
import type { RouteActionMessage } from './messages.ts';
import { convertProxyHeader } from './proxy-header.ts';
import { valueOr } from './units.ts';

const CONNECT = 'connect';
const WEBSOCKET: RouteUpgrade = { type: 'websocket', isEnabled: true };

/** The types of one list; each may stand there once. */
export class UpgradeTypes {
  readonly #faults: FaultSink;
  readonly #seen = new Set<string>();

  constructor(faults: FaultSink) {
    this.#faults = faults;
  }

  /** @param at path of the list's member. @returns the type in lower case: case does not count. */
  claim(written: string, at: string): string {
    const type = written.toLowerCase();
    if (this.#seen.has(type)) this.#faults.error(`${at}.upgrade_type`, `a second upgrade of type ${quote(written)}`);
    this.#seen.add(type);
    return type;
  }
}

export function convertRouteUpgrades(
  message: RouteActionMessage,
  at: string,
  faults: FaultSink,
): Pick<ForwardAction, 'upgrades' | 'terminatesConnect' | 'terminatesPost' | 'connectHeader'> {
  const types = new UpgradeTypes(faults);
  let terminatesConnect = false;
  let terminatesPost = false;
  let connectHeader: ProxyHeaderSettings | undefined;
  const upgrades = message.upgrade_configs.map(({ upgrade_type, enabled, connect_config }, index): RouteUpgrade => {
    const here = `${at}.upgrade_configs[${index}]`;
    const type = types.claim(upgrade_type, here);
    if (connect_config !== null && type !== CONNECT) {
      faults.error(`${here}.connect_config`, `has a meaning for CONNECT only, not for ${quote(upgrade_type)}`);
    }
    terminatesConnect ||= connect_config !== null;
    terminatesPost ||= connect_config?.allow_post === true;
    const header = connect_config?.proxy_protocol_config ?? null;
    if (header !== null)
      connectHeader = convertProxyHeader(header, `${here}.connect_config.proxy_protocol_config`, faults);
    return { type, isEnabled: valueOr(enabled, true) };
  });
  if (valueOr(message.use_websocket, false) && !upgrades.some(({ type }) => type === WEBSOCKET.type)) {
    upgrades.push(WEBSOCKET);
  }
  return {
    upgrades,
    terminatesConnect,
    ...(terminatesPost ? { terminatesPost } : {}),
    ...(connectHeader !== undefined && { connectHeader }),
  };
}
