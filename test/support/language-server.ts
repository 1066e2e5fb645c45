// A language server as an editor runs it: JSON-RPC over its standard streams, one document at a time.
// Source: Language Server Protocol 3.17.

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type SpokenProgram, startSpokenProgram } from './child-process.ts';

const HEAD_END = '\r\n\r\n';

interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Diagnostic {
  readonly message: string;
  readonly range: { readonly start: Position };
}

export interface Completion {
  readonly label: string;
  readonly documentation?: string | { readonly value: string };
  readonly tags?: readonly number[];
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

const COMPLETION = {
  completionItem: {
    documentationFormat: ['plaintext'],
    tagSupport: { valueSet: [1] },
    resolveSupport: { properties: ['documentation'] },
  },
};

type Settings = Readonly<Record<string, unknown>>;

export class LanguageServer implements AsyncDisposable {
  readonly #program: SpokenProgram;
  readonly #folder: string;
  readonly #settings: Settings;
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #diagnostics = new Map<string, (found: readonly Diagnostic[]) => void>();
  #received = Buffer.alloc(0);
  #requests = 0;
  #errors = '';

  private constructor(command: readonly string[], folder: string, settings: Settings) {
    this.#folder = folder;
    this.#settings = settings;
    this.#program = startSpokenProgram(command[0]!, command.slice(1), folder);
    this.#program.stdout.on('data', (bytes: Buffer) => this.#read(bytes));
    this.#program.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
    this.#program.stdin.on('error', () => {});
    this.#program.once('close', () => {
      for (const answer of this.#answers.values()) answer.reject(new Error(`${command[0]} has ended: ${this.#errors}`));
    });
  }

  /** @param settings what it gets when it asks the editor for its configuration, by section. */
  static async start(command: readonly string[], folder: string, settings: Settings = {}): Promise<LanguageServer> {
    const server = new LanguageServer(command, folder, settings);
    await server.#ask('initialize', {
      processId: process.pid,
      rootUri: pathToFileURL(folder).href,
      capabilities: {
        workspace: { configuration: true },
        textDocument: { completion: COMPLETION, hover: { contentFormat: ['plaintext'] }, publishDiagnostics: {} },
      },
    });
    server.#send({ method: 'initialized', params: {} });
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ask('shutdown');
    const ended = new Promise((resolve) => this.#program.once('close', resolve));
    this.#send({ method: 'exit' });
    this.#program.stdin.end();
    await ended;
  }

  /** @returns what it says of the document by itself. */
  async faultsOf(name: string, text: string): Promise<readonly Diagnostic[]> {
    const { promise, resolve } = Promise.withResolvers<readonly Diagnostic[]>();
    this.#diagnostics.set(this.#uri(name), resolve);
    this.open(name, text);
    return await promise;
  }

  open(name: string, text: string): void {
    const languageId = name.endsWith('.ts') ? 'typescript' : 'yaml';
    const textDocument = { uri: this.#uri(name), languageId, version: 1, text };
    this.#send({ method: 'textDocument/didOpen', params: { textDocument } });
  }

  /** What may be written at a place of an open document. */
  async completions(name: string, position: Position): Promise<readonly Completion[]> {
    const answer = await this.#ask('textDocument/completion', { textDocument: { uri: this.#uri(name) }, position });
    const { items = answer } = answer as { items?: unknown };
    return items as readonly Completion[];
  }

  /** What is shown beside something that may be written. */
  async documentationOf(completion: Completion): Promise<string> {
    const { documentation } = (await this.#ask('completionItem/resolve', completion)) as Completion;
    return typeof documentation === 'string' ? documentation : (documentation?.value ?? '');
  }

  /** What is shown of the word at a place. */
  async explanation(name: string, position: Position): Promise<string> {
    const answer = await this.#ask('textDocument/hover', { textDocument: { uri: this.#uri(name) }, position });
    return (answer as { contents: { value: string } } | null)?.contents.value ?? '';
  }

  #uri(name: string): string {
    return pathToFileURL(path.join(this.#folder, name)).href;
  }

  #ask(method: string, params?: unknown): Promise<unknown> {
    this.#requests += 1;
    const answer = Promise.withResolvers<unknown>();
    this.#answers.set(this.#requests, answer);
    this.#send({ id: this.#requests, method, params });
    return answer.promise;
  }

  #send(message: Message): void {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    this.#program.stdin.write(`Content-Length: ${Buffer.byteLength(text)}${HEAD_END}${text}`);
  }

  #read(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    for (;;) {
      const headEnd = this.#received.indexOf(HEAD_END);
      if (headEnd === -1) return;
      const start = headEnd + HEAD_END.length;
      const end = start + Number(/Content-Length: (\d+)/i.exec(this.#received.toString('latin1', 0, headEnd))![1]);
      if (this.#received.length < end) return;
      const message = JSON.parse(this.#received.toString('utf8', start, end)) as Message;
      this.#received = this.#received.subarray(end);
      this.#take(message);
    }
  }

  #take({ id, method, params, result, error }: Message): void {
    if (method === 'textDocument/publishDiagnostics') {
      const { uri, diagnostics } = params as { readonly uri: string; readonly diagnostics: readonly Diagnostic[] };
      this.#diagnostics.get(uri)?.(diagnostics);
    } else if (method === 'workspace/configuration') {
      const { items } = params as { readonly items: readonly { readonly section: string }[] };
      this.#send({ id: id!, result: items.map(({ section }) => this.#settings[section] ?? null) });
    } else if (method !== undefined) {
      if (id !== undefined) this.#send({ id, result: null });
    } else {
      const answer = this.#answers.get(id!)!;
      this.#answers.delete(id!);
      if (error === undefined) answer.resolve(result);
      else answer.reject(new Error(error.message));
    }
  }
}

/** Just behind the only occurrence of `mark` in a text. */
export function placeBehind(text: string, mark: string): Position {
  const before = text.slice(0, text.indexOf(mark) + mark.length).split('\n');
  return { line: before.length - 1, character: before.at(-1)!.length };
}
