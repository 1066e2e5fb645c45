export declare const PACKAGE_ROOT: string;
export declare const RUNTIME_MAJOR: number;
export declare const NO_RUNTIME_MESSAGE: string;
export declare function packageFolder(name: string): string | undefined;
export declare function runtimeFolder(): string | undefined;
export declare function runtimePath(): string | undefined;
export declare function runtimeVersion(): string;
