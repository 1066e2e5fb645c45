// What one filter of a request may ask of its stream. One small object for each filter of each request, so all that it
// can do stands on the class.

import type { JsonObject } from '../../base/json.ts';
import type { ConfigSourceSettings, RouteRateLimits } from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';
import type { DownstreamFacts, FormatFacts } from '../format/facts.ts';
import type { ResponseFlagName } from '../response-flags.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { DecodingPass } from './decoding-pass.ts';
import type { EncodingPass } from './encoding-pass.ts';
import type { CountedCluster, FilterCallbacks } from './filter.ts';
import type { CallReceiver, CallRequest } from './filter-call.ts';
import type { FilteredStream } from './filtered-stream.ts';
import type { LocalReply, ReplyForm } from './local-reply.ts';

/** The filters of a request, as each of them reaches them. */
export interface FilteredPasses {
  readonly decoding: DecodingPass;
  readonly encoding: EncodingPass;
  call(request: CallRequest, receiver: CallReceiver): void;
  /** Filters look at a reply of the proxy's own. */
  readonly isReplying: boolean;
  restateReply(status: number): void;
  forwardInstead(index: number, request: string): boolean;
  /** False when the act throws, which ends the stream. */
  guarded(act: () => boolean): boolean;
  shared<Shared extends object>(key: string, make: () => Shared): Shared;
  routeSettings(index: number): readonly unknown[];
  /** Null for one that this worker does not know. */
  clusterNamed(name: string): CountedCluster | null;
}

const NOTHING_SAID: readonly unknown[] = [];

export class StreamFilterCallbacks implements FilterCallbacks {
  readonly #passes: FilteredPasses;
  readonly #stream: FilteredStream;
  /** Of the filter, in each direction. */
  readonly #decodingIndex: number;
  readonly #encodingIndex: number;
  readonly #count: number;
  /** For a filter within another, to which routes say nothing. */
  readonly #isInner: boolean;

  constructor(passes: FilteredPasses, stream: FilteredStream, index: number, count: number, isInner = false) {
    this.#passes = passes;
    this.#stream = stream;
    this.#decodingIndex = index;
    this.#encodingIndex = count - 1 - index;
    this.#count = count;
    this.#isInner = isInner;
  }

  reply(reply: LocalReply): void {
    if (!this.#stream.hasEnded) this.#stream.giveUp(reply);
  }

  awaitRoute(done: (isThere: boolean) => void): (() => void) | undefined {
    return this.#stream.awaitRoute(done);
  }

  awaitCluster(
    source: ConfigSourceSettings,
    timeoutMs: number,
    done: (isThere: boolean) => void,
  ): (() => void) | undefined {
    return this.#stream.awaitCluster(source, timeoutMs, done);
  }

  beginAgain(): boolean {
    return this.#stream.beginAgain();
  }

  continueDecoding(): void {
    this.#passes.decoding.goOn(this.#decodingIndex);
  }

  continueEncoding(): void {
    this.#passes.encoding.goOn(this.#encodingIndex);
  }

  addRequestData(bytes: Buffer): void {
    this.#passes.decoding.addData(this.#decodingIndex, bytes);
  }

  addResponseData(bytes: Buffer): void {
    this.#passes.encoding.addData(this.#encodingIndex, bytes);
  }

  releaseResponse(bytes: number): number {
    return this.#passes.encoding.release(this.#encodingIndex, bytes);
  }

  releaseRequest(bytes: number): number {
    return this.#passes.decoding.release(this.#decodingIndex, bytes);
  }

  leaveRequest(): void {
    this.#passes.decoding.leave(this.#decodingIndex);
  }

  leaveResponse(): void {
    this.#passes.encoding.leave(this.#encodingIndex);
  }

  onlyReadResponse(): void {
    this.#passes.encoding.leave(this.#encodingIndex, 'reads');
  }

  exchangeRequest(taken: number, bytes: Buffer, isLast: boolean): boolean {
    return this.#passes.guarded(() => this.#passes.decoding.exchange(this.#decodingIndex, taken, bytes, isLast));
  }

  exchangeResponse(taken: number, bytes: Buffer, isLast: boolean): boolean {
    return this.#passes.guarded(() => this.#passes.encoding.exchange(this.#encodingIndex, taken, bytes, isLast));
  }

  get isLocalReply(): boolean {
    return this.#passes.isReplying || !this.#passes.encoding.hasBegun;
  }

  restateReply(status: number): void {
    this.#passes.restateReply(status);
  }

  forwardInstead(request: string): boolean {
    return this.#passes.forwardInstead(this.#encodingIndex, request);
  }

  get awaitsTunnel(): boolean {
    return this.#stream.awaitsTunnel;
  }

  shared<Shared extends object>(key: string, make: () => Shared): Shared {
    return this.#passes.shared(key, make);
  }

  call(request: CallRequest, receiver: CallReceiver): void {
    this.#passes.call(request, receiver);
  }

  markHealthCheck(): void {
    this.#stream.markHealthCheck();
  }

  addFlag(flag: ResponseFlagName): void {
    this.#stream.addFlag(flag);
  }

  addMetadata(namespace: string, values: JsonObject): void {
    this.#stream.addMetadata(namespace, values);
  }

  state(key: string): string | undefined {
    return this.#stream.state(key);
  }

  setState(key: string, value: string, isReadOnly: boolean): void {
    this.#stream.setState(key, value, isReadOnly);
  }

  nameHost(host: string, port: number | null): void {
    this.#stream.namedHost = { host, port };
  }

  overrideHost(address: string, isStrict: boolean): void {
    this.#stream.overrideHost = { address, isStrict };
  }

  get isFromEdge(): boolean {
    return this.#stream.isFromEdge;
  }

  get routeCluster(): string {
    return this.#stream.routeCluster;
  }

  get rateLimits(): RouteRateLimits | null {
    return this.#stream.rateLimits;
  }

  get clientAddress(): string {
    return this.#stream.clientAddress;
  }

  get connection(): DownstreamFacts {
    return this.#stream.connectionEnds;
  }

  get upstreamAddress(): string {
    return this.#stream.upstreamAddress;
  }

  becomeGrpc(form: ReplyForm): void {
    this.#stream.isGrpc = true;
    this.#stream.replyForm = form;
  }

  get isComplete(): boolean {
    return this.#stream.isResponseComplete;
  }

  get isHealthCheck(): boolean {
    return this.#stream.isHealthCheck;
  }

  get protocol(): string {
    return this.#stream.protocol;
  }

  get isGrpc(): boolean {
    return this.#stream.isGrpc;
  }

  get cluster(): CountedCluster | null {
    return this.#stream.cluster;
  }

  get targetCluster(): CountedCluster | null {
    return this.#stream.cluster ?? this.#passes.clusterNamed(this.#stream.routeCluster);
  }

  get hasRoute(): boolean {
    return this.#stream.hasRoute;
  }

  get isForwarded(): boolean {
    return this.#stream.isForwarded;
  }

  get bufferLimitBytes(): number {
    return this.#stream.bufferLimitBytes;
  }

  limitHeldRequest(bytes: number): void {
    this.#passes.decoding.limitHeld(bytes);
  }

  heldResponseHead(status?: number): EditableHead | null {
    return this.isLocalReply ? null : this.#passes.encoding.editHeldHead(this.#encodingIndex, status);
  }

  heldRequestHead(method?: string): RequestHead {
    return this.#passes.decoding.editHeldHead(this.#decodingIndex, method);
  }

  settleRequestHead(): void {
    if (this.#passes.decoding.settleHead()) this.#stream.findRoute();
  }

  settleEditedHead(): void {
    this.#passes.decoding.settleHead();
  }

  facts(response: EditableHead | null, replyBody?: string): FormatFacts {
    const { facts } = this.#stream;
    if (response !== null) facts.liveResponse = response;
    if (replyBody !== undefined) facts.localReplyBody = replyBody;
    return facts;
  }

  forInner(): FilterCallbacks {
    return new StreamFilterCallbacks(this.#passes, this.#stream, this.#decodingIndex, this.#count, true);
  }

  get routeSettings(): readonly unknown[] {
    if (this.#isInner) return NOTHING_SAID;
    return this.#passes.routeSettings(this.#decodingIndex);
  }
}
