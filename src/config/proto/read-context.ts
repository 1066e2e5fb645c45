// The state of one reading of one source: where we are, what was found wrong, which generation holds here.
// Passed through every reader of this folder; lives as long as the call that made it.

import type { Message, Type } from 'protobufjs/light.js';
import { nearestName } from '../../base/nearest-name.ts';
import type { FaultSeverity } from '../fault.ts';
import type { FaultList } from '../fault-list.ts';
import { type DocumentLayer, positionIn } from '../source/config-document.ts';
import { formatPath, type PathSegment } from '../source/field-path.ts';
import { describeNode, quote, type ValueNode } from '../source/node.ts';
import { SyntaxFault } from '../source/syntax-error.ts';
import type { ExtensionSlot } from './extension-lookup.ts';
import type { Generation } from './message-names.ts';
import type { ProtoSchema } from './root.ts';
import type { UnknownFieldPolicy } from './unknown-fields.ts';

/** What a reader returns after it has reported a fault. */
export const INVALID: unique symbol = Symbol('invalid');
export type Invalid = typeof INVALID;

/** Reads one value of a known field type. */
export type ValueReader = (context: ReadContext, node: ValueNode) => unknown;

/** Reads a whole message from a map; the way readers reach each other without importing each other. */
export type MessageReader = (context: ReadContext, type: Type, node: ValueNode) => Message | Invalid;

/** Path segments on the way to a value. Aliases can nest deeper than the text they are written in. */
const MAX_PATH_SEGMENTS = 1000;

const CLUSTER = '.proxy.config.cluster.v3.Cluster';
/** Holds one of several extensions. */
const CHOICE = '.proxy.config.cluster.v3.LoadBalancingPolicy.Policy';
/** Fields that are left out, or the extensions in them, with a warning, whatever extension stands there. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  '.proxy.config.bootstrap.v3.Bootstrap xds_config_tracker_extension',
  '.proxy.config.bootstrap.v3.Bootstrap xds_delegate_extension',
  // What they add to formats is unknown there.
  '.proxy.config.core.v3.SubstitutionFormatString formatters',
  '.proxy.config.rbac.v3.RBAC.AuditLoggingOptions.AuditLoggerConfig audit_logger',
  '.proxy.config.route.v3.RouteAction early_data_policy',
]);

/** Fields that are refused with a reason of their own, which says more than that nobody knows the extension there. */
export const REFUSED_WITH_REASON: readonly string[] = [
  '.proxy.config.core.v3.ApiConfigSource config_validators',
  '.proxy.config.rbac.v3.Permission matcher',
  '.proxy.config.rbac.v3.Principal custom',
  '.proxy.extensions.http.custom_response.redirect_policy.v3.RedirectPolicy modify_request_headers_action',
  '.proxy.extensions.transport_sockets.tls.v3.CertificateValidationContext custom_validator_config',
  '.proxy.extensions.transport_sockets.tls.v3.CommonTlsContext custom_handshaker',
  '.proxy.extensions.transport_sockets.tls.v3.CommonTlsContext custom_tls_certificate_selector',
  '.proxy.type.matcher.v3.StringMatcher custom',
];
const REFUSED: ReadonlySet<string> = new Set(REFUSED_WITH_REASON);

export interface ReadContextOptions {
  readonly schema: ProtoSchema;
  readonly layer: DocumentLayer;
  readonly faults: FaultList;
  readonly unknownFields: UnknownFieldPolicy;
  readonly generation: Generation;
  readonly readMessage: MessageReader;
}

export class ReadContext {
  readonly schema: ProtoSchema;
  readonly readMessage: MessageReader;
  /** Decides names that mean different fields in the two generations. Set anew inside each Any. */
  generation: Generation;
  /** Whether something was met that only the older generation writes. */
  sawOlderGeneration = false;
  /** Above 0 inside of what nobody is to see: faults do not quote it. */
  secrecy = 0;
  readonly #layer: DocumentLayer;
  readonly #faults: FaultList;
  readonly #unknownFields: UnknownFieldPolicy;
  readonly #path: PathSegment[] = [];
  readonly #holders: Type[] = [];

  constructor(options: ReadContextOptions) {
    this.schema = options.schema;
    this.readMessage = options.readMessage;
    this.generation = options.generation;
    this.#layer = options.layer;
    this.#faults = options.faults;
    this.#unknownFields = options.unknownFields;
  }

  get path(): string {
    return formatPath(this.#path);
  }

  push(segment: PathSegment): void {
    if (this.#path.length === MAX_PATH_SEGMENTS) throw new SyntaxFault('nested too deep', -1);
    this.#path.push(segment);
  }

  pop(): void {
    this.#path.pop();
  }

  enterMessage(type: Type): void {
    this.#holders.push(type);
  }

  leaveMessage(): void {
    this.#holders.pop();
  }

  /** The place of an extension in `field` of the message being read. */
  slot(field: string, isOptional = false): ExtensionSlot {
    const holder = this.#holders.at(-1)!.fullName.slice(1);
    const isUpstream = this.#holders.some((type) => type.fullName === CLUSTER);
    const around = this.#holders.at(-2)?.fullName;
    const place = around === undefined ? '' : `${around} ${this.#fieldAround()}`;
    const isChoice = around === CHOICE || LEFT_OUT.has(place);
    return { holder, field, isUpstream, isChoice, isOptional, isRefused: REFUSED.has(place) };
  }

  /** The name of the field that holds the message around, or a list of such messages. */
  #fieldAround(): PathSegment | undefined {
    return this.#path.findLast((segment) => typeof segment === 'string' && segment !== 'typed_config');
  }

  /** How a fault calls a value that has been written here. */
  describe(node: ValueNode): string {
    if (this.secrecy === 0 || node.kind !== 'scalar') return describeNode(node);
    return node.form === 'null' ? 'null' : 'another value, which is not shown';
  }

  /** Reports a fault at the current path. `offset` of -1 when the value has no place in the text. */
  fault(message: string, offset: number, severity: FaultSeverity = 'error'): Invalid {
    this.#faults.add({ path: this.path, message, severity, ...positionIn(this.#layer.source, offset) });
    return INVALID;
  }

  /** Reports a fault of another field of the same message. */
  faultBeside(field: string, message: string, offset: number): Invalid {
    const here = this.#path.pop()!;
    this.#path.push(field);
    this.fault(message, offset);
    this.#path[this.#path.length - 1] = here;
    return INVALID;
  }

  /** Reports a field that `type` does not have; the current path is that of the message around it. */
  unknownField(type: Type, field: string, offset: number, known: readonly string[]): void {
    const typeName = type.fullName.slice(1);
    const verdict = this.#unknownFields.judge(typeName, field);
    if (verdict === 'silent') return;
    const suggestion = suggest(nearestName(field, known));
    this.push(field);
    this.fault(`unknown field ${quote(field)} in ${typeName}${suggestion}`, offset, verdict);
    this.pop();
  }
}

/** The end of a message that found a near miss: `, did you mean "x"?`. */
export function suggest(name: string | undefined): string {
  return name === undefined ? '' : `; did you mean ${quote(name)}?`;
}
