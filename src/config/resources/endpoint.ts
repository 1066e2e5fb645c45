// ClusterLoadAssignment message, or the v2 list of hosts, → members of a cluster. Checks what concerns the
// assignment as a whole: contiguous priorities, weight sums, references to named endpoints.
// Source: spec 2.8 (hosts, load_assignment); weights are any u32 of 1 or more.

import { type Address, formatAddress, type IpAddress } from '../../base/address.ts';
import { type FamilyOrder, inFamilyOrder } from '../../base/address-families.ts';
import type { ConfiguredHealth, DnsTarget, EndpointSettings, HostSettings, Locality } from '../../snapshot/index.ts';
import { HealthStatus } from '../proto/generated/enums.ts';
import { quote } from '../source/node.ts';
import { convertAddress, convertNamedAddress } from './address.ts';
import { balancerMetadata, subsetValues } from './balancer-metadata.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertEndpointCheck } from './health-check.ts';
import type {
  AddressMessage,
  ClusterLoadAssignment,
  Endpoint,
  LbEndpoint,
  LocalityLbEndpoints,
  LocalityMessage,
} from './messages.ts';
import { convertMetadata } from './metadata.ts';
import { valueOr } from './units.ts';

const MAX_PRIORITY = 128;
const MAX_WEIGHT_SUM = 0xffff_ffff;
const NO_LOCALITY: Locality = { region: '', zone: '', subZone: '' };

/** One of which nothing has been said but its address. */
export const BARE_ENDPOINT: EndpointSettings = {
  hostname: '',
  weight: 1,
  locality: NO_LOCALITY,
  localityWeight: 0,
  priority: 0,
  canary: false,
  health: 'unknown',
  hashKey: '',
  subsetValues: [],
};

/** A status that is not here says nothing. */
const HEALTH_BY_STATUS: ReadonlyMap<number, ConfiguredHealth> = new Map([
  [HealthStatus.HEALTHY, 'healthy'],
  [HealthStatus.UNHEALTHY, 'unhealthy'],
  [HealthStatus.TIMEOUT, 'timeout'],
  [HealthStatus.DRAINING, 'draining'],
  [HealthStatus.DEGRADED, 'degraded'],
]);

/** @param status number of HealthStatus. */
export function configuredHealth(status: number): ConfiguredHealth {
  return HEALTH_BY_STATUS.get(status) ?? 'unknown';
}

type NamedEndpoints = ClusterLoadAssignment['named_endpoints'];

/** Takes in the endpoints of an assignment one by one; what an address may be depends on the discovery type. */
export interface MemberCollector {
  /** @param source where the endpoint has more addresses than this one. */
  add(
    address: AddressMessage | null,
    at: string,
    endpoint: EndpointSettings,
    faults: FaultSink,
    source?: FoundEndpoint,
  ): void;
}

interface FoundEndpoint {
  readonly message: Endpoint;
  readonly at: string;
}

/** Members of a static cluster. An address that comes a second time is left out, the first one counts. */
export class StaticMembers implements MemberCollector {
  readonly hosts: HostSettings[] = [];
  readonly #seen = new Set<string>();
  readonly #familyOrder: FamilyOrder;

  /** @param familyOrder of the addresses of one member. */
  constructor(familyOrder: FamilyOrder) {
    this.#familyOrder = familyOrder;
  }

  add(
    message: AddressMessage | null,
    at: string,
    endpoint: EndpointSettings,
    faults: FaultSink,
    source?: FoundEndpoint,
  ): void {
    const address = convertAddress(message, at, 'static-endpoint', faults);
    if (address === undefined) return;
    const key = formatAddress(address);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    // In this order the copy is several times as fast.
    if (source === undefined) this.hosts.push({ ...endpoint, address });
    else this.hosts.push({ ...endpoint, address, ...this.#connectOrder(address, source, faults) });
  }

  #connectOrder(
    address: Address,
    { message, at }: FoundEndpoint,
    faults: FaultSink,
  ): Pick<HostSettings, 'connectOrder'> {
    const others = message.additional_addresses.map((other, index) =>
      convertAdditional(other.address, `${at}.additional_addresses[${index}].address`, faults),
    );
    if (address.kind === 'pipe') {
      faults.error(`${at}.additional_addresses`, 'a unix socket has no addresses beside it');
      return {};
    }
    const usable = others.filter((other) => other !== undefined);
    return { connectOrder: inFamilyOrder([address, ...usable], this.#familyOrder) };
  }
}

/** Names to look up, with their ports. */
export class DnsTargets implements MemberCollector {
  readonly targets: DnsTarget[] = [];

  add(
    message: AddressMessage | null,
    at: string,
    endpoint: EndpointSettings,
    faults: FaultSink,
    source?: FoundEndpoint,
  ): void {
    if (source !== undefined) {
      faults.warning(
        `${source.at}.additional_addresses`,
        'ignored without type STATIC: DNS says which addresses there are',
      );
    }
    const target = convertNamedAddress(message, at, faults);
    if (target !== undefined) this.targets.push({ ...endpoint, ...target });
  }
}

/** @returns undefined when it cannot be used; a fault says why. */
function convertAdditional(message: AddressMessage | null, at: string, faults: FaultSink): IpAddress | undefined {
  const address = convertAddress(message, at, 'static-endpoint', faults);
  if (address?.kind !== 'pipe') return address;
  faults.error(`${at}.pipe`, 'only an IP address can stand beside others');
  return undefined;
}

/** The v2 form: one unnamed locality of equal members. */
export function convertHosts(
  hosts: readonly AddressMessage[],
  at: string,
  members: MemberCollector,
  faults: FaultSink,
): void {
  for (const [index, message] of hosts.entries()) members.add(message, `${at}[${index}]`, BARE_ENDPOINT, faults);
}

/** @param usedKeys of the endpoints' metadata, by which the cluster makes subsets. */
export function convertLoadAssignment(
  message: ClusterLoadAssignment,
  at: string,
  usedKeys: ReadonlySet<string>,
  members: MemberCollector,
  faults: FaultSink,
): void {
  for (const [index, locality] of message.endpoints.entries()) {
    convertLocality(
      locality,
      `${at}.endpoints[${index}]`,
      { named: message.named_endpoints, usedKeys },
      members,
      faults,
    );
  }
  checkPriorities(message.endpoints, `${at}.endpoints`, faults);
}

function convertLocality(
  message: LocalityLbEndpoints,
  at: string,
  { named, usedKeys }: { readonly named: NamedEndpoints; readonly usedKeys: ReadonlySet<string> },
  members: MemberCollector,
  faults: FaultSink,
): void {
  const locality = convertLocalityName(message.locality);
  const localityWeight = valueOr(message.load_balancing_weight, 0);
  const { priority } = message;
  const [endpoints, endpointsAt] = endpointsOf(message, at);
  let weightSum = 0;
  for (const [index, member] of endpoints.entries()) {
    const weight = Math.max(1, valueOr(member.load_balancing_weight, 1));
    weightSum += weight;
    const endpoint = resolveEndpoint(member, `${endpointsAt}[${index}]`, named, faults);
    if (endpoint === undefined) continue;
    const { hostname } = endpoint.message;
    const lb = balancerMetadata(member.metadata);
    const canary = lb.get('canary')?.boolValue ?? false;
    const hashKey = lb.get('hash_key')?.stringValue ?? '';
    const health = configuredHealth(member.health_status);
    const subset = subsetValues(lb, usedKeys);
    const common: EndpointSettings = {
      hostname,
      weight,
      locality,
      localityWeight,
      priority,
      canary,
      health,
      hashKey,
      subsetValues: subset,
    };
    const check = convertEndpointCheck(endpoint.message, endpoint.at, faults);
    const hasMore = member.metadata !== null || check !== undefined;
    const settings = hasMore ? { ...common, ...convertMetadata(member.metadata), ...(check && { check }) } : common;
    const source = endpoint.message.additional_addresses.length === 0 ? undefined : endpoint;
    members.add(endpoint.message.address, `${endpoint.at}.address`, settings, faults, source);
  }
  checkWeightSum(weightSum, endpointsAt, 'endpoint weights', faults);
}

/** v3 can wrap the list in a message of its own, to tell an empty list from none. */
function endpointsOf(message: LocalityLbEndpoints, at: string): readonly [readonly LbEndpoint[], string] {
  const wrapped = message.load_balancer_endpoints;
  if (wrapped !== null) return [wrapped.lb_endpoints, `${at}.load_balancer_endpoints.lb_endpoints`];
  return [message.lb_endpoints, `${at}.lb_endpoints`];
}

function resolveEndpoint(
  member: LbEndpoint,
  at: string,
  named: NamedEndpoints,
  faults: FaultSink,
): FoundEndpoint | undefined {
  if (member.endpoint !== null) return { message: member.endpoint, at: `${at}.endpoint` };
  const name = member.endpoint_name;
  const message = Object.hasOwn(named, name) ? named[name] : undefined;
  // A fault of a named endpoint is shown where the name is used: that is what makes it a member.
  if (message !== undefined) return { message, at: `${at}.endpoint_name` };
  if (name === '') faults.error(at, 'one of endpoint, endpoint_name is required');
  else faults.error(`${at}.endpoint_name`, `${quote(name)} is not in named_endpoints`);
  return undefined;
}

export function convertLocalityName(message: LocalityMessage | null): Locality {
  if (message === null) return NO_LOCALITY;
  return { region: message.region, zone: message.zone, subZone: message.sub_zone };
}

function checkPriorities(localities: readonly LocalityLbEndpoints[], at: string, faults: FaultSink): void {
  const weightSums = new Map<number, number>();
  for (const { priority, load_balancing_weight } of localities) {
    weightSums.set(priority, (weightSums.get(priority) ?? 0) + valueOr(load_balancing_weight, 0));
  }
  for (const [priority, sum] of weightSums) {
    checkWeightSum(sum, at, `locality weights of priority ${priority}`, faults);
  }
  const highest = Math.max(...weightSums.keys());
  // A priority above the limit has broken a field rule already.
  if (highest > MAX_PRIORITY) return;
  for (let priority = 0; priority < highest; priority += 1) {
    if (weightSums.has(priority)) continue;
    faults.error(at, `priorities must be contiguous from 0: ${highest} is used, ${priority} is not`);
    return;
  }
}

function checkWeightSum(sum: number, at: string, what: string, faults: FaultSink): void {
  if (sum > MAX_WEIGHT_SUM) faults.error(at, `the sum of ${what} is ${sum} and exceeds the limit ${MAX_WEIGHT_SUM}`);
}
