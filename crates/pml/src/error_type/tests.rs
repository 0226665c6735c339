//! Tests of the classification: messages of servers, of tools and of PML, each with its type.

use super::*;

/// Messages of tools, word for word.
const SAID: &[(&str, ErrorType)] = &[
    ("ENOENT: no such file or directory, open '/tmp/x.txt'", NotFound),
    ("EACCES: permission denied, mkdir '/srv/x'", Permission),
    ("EISDIR: illegal operation on a directory, read", Validation),
    ("EEXIST: file already exists, mkdir 'a'", Validation),
    ("ENOTEMPTY: directory not empty, rmdir 'a'", Validation),
    ("ENOSPC: no space left on device, write", Internal),
    ("connect ECONNREFUSED 127.0.0.1:5432", Network),
    ("connect ETIMEDOUT 10.0.0.1:443", Timeout),
    ("read ECONNRESET", Network),
    ("getaddrinfo ENOTFOUND api.example.com", Network),
    ("getaddrinfo EAI_AGAIN db", Network),
    ("TypeError: fetch failed", Network),
    ("fetch failed", Network),
    ("socket hang up", Network),
    ("The operation was aborted due to timeout", Timeout),
    ("AbortError: This operation was aborted", Cancelled),
    ("Access denied - path outside allowed directories: /etc/passwd not in /srv", Permission),
    ("Parent directory does not exist: /srv/a", NotFound),
    ("Could not find exact match for edit:\nfoo", NotFound),
    ("TypeError: Cannot read properties of undefined (reading 'x')", Internal),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'", NotFound),
    ("PermissionError: [Errno 13] Permission denied: '/etc/shadow'", Permission),
    ("ValueError: invalid literal for int() with base 10: 'x'", Validation),
    ("TypeError: unsupported operand type(s) for +: 'int' and 'str'", Validation),
    ("KeyError: 'name'", Validation),
    ("ModuleNotFoundError: No module named 'pandas'", NotFound),
    ("ZeroDivisionError: division by zero", Internal),
    ("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", Validation),
    ("asyncio.exceptions.CancelledError", Cancelled),
    ("subprocess.TimeoutExpired: Command 'sleep' timed out after 5 seconds", Timeout),
    ("requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://x.example/a", NotFound),
    (
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded",
        Network,
    ),
    (
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='x', port=443): Read timed out. (read timeout=5)",
        Timeout,
    ),
    ("httpx.ConnectError: [Errno -2] Name or service not known", Network),
    ("httpx.HTTPStatusError: Server error '503 Service Unavailable' for url 'https://x.example'", Network),
    ("All connection attempts failed", Network),
    ("fatal: not a git repository (or any of the parent directories): .git", NotFound),
    ("error: pathspec 'nope' did not match any file(s) known to git", NotFound),
    ("fatal: ambiguous argument 'x': unknown revision or path not in the working tree.", NotFound),
    ("fatal: Authentication failed for 'https://github.com/a/b.git/'", Permission),
    ("git@github.com: Permission denied (publickey).", Permission),
    ("fatal: could not read Username for 'https://github.com': terminal prompts disabled", Permission),
    ("fatal: unable to access 'https://x/': Could not resolve host: x", Network),
    ("! [rejected] main -> main (non-fast-forward)", Validation),
    ("error: Your local changes to the following files would be overwritten by merge", Validation),
    ("Authentication Failed: Bad credentials", Permission),
    ("Not Found: Resource not found: Not Found", NotFound),
    ("API rate limit exceeded for 1.2.3.4. (But here's the good news...)", RateLimit),
    ("HTTP 403: API rate limit exceeded for user", RateLimit),
    ("Validation Failed: title is missing", Validation),
    ("Resource not accessible by integration", Permission),
    ("429 Too Many Requests", RateLimit),
    ("Request failed with status code 422", Validation),
    ("Request failed with status code 500", Internal),
    ("HTTP/1.1 504 Gateway Timeout", Timeout),
    ("Error: 401 Unauthorized", Permission),
    ("upstream returned 502", Network),
    ("status: 410", NotFound),
    ("MCP error -32602: Invalid arguments for tool x", Validation),
    ("MCP error -32601: Method not found", NotFound),
    ("MCP error -32001: Request timed out", Timeout),
    ("MCP error -32603: ENOENT: no such file or directory", NotFound),
    ("MCP error -32603: oops", Internal),
    ("sqlite3.OperationalError: no such table: users", NotFound),
    ("SQLITE_CONSTRAINT: UNIQUE constraint failed: users.email", Validation),
    ("near \"FORM\": syntax error", Validation),
    ("database is locked", Internal),
    ("attempt to write a readonly database", Permission),
    ("You exceeded your current quota, please check your plan", RateLimit),
    ("Incorrect API key provided", Permission),
    ("context deadline exceeded", Timeout),
    ("x509: certificate signed by unknown authority", Network),
    ("thread 'main' panicked at src/main.rs:3", Internal),
    ("Internal Server Error", Internal),
    ("Fichier introuvable", NotFound),
    ("Aucun fichier ou dossier de ce type", NotFound),
    ("Permission non accordée", Permission),
    ("Accès refusé", Permission),
    ("Le délai d’attente est dépassé", Timeout),
    ("Connexion refusée", Network),
    ("Trop de requêtes, réessayez plus tard", RateLimit),
    ("Le champ « nom » est obligatoire", Validation),
    ("L'opération a été annulée", Cancelled),
    ("Erreur interne du serveur", Internal),
    ("it gives no reason", Unknown),
    ("something went wrong", Unknown),
    ("read 404 lines in 500 ms", Unknown),
    ("sold 429 pieces", Unknown),
];

#[test]
fn what_tools_say_is_sorted() {
    let wrong: Vec<String> = SAID
        .iter()
        .map(|(message, kind)| (message, kind, of("TOOL_ERROR", message, None)))
        .filter(|(_, kind, found)| *kind != found)
        .map(|(message, kind, found)| format!("{message}: {found:?} for {kind:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(SAID.len() >= 60);
}

#[test]
fn codes_come_before_words() {
    for (code, message, data, kind) in [
        ("TIMEOUT", "not found", None, Timeout),
        ("DENIED", "invalid", Some(r#"{"status":404}"#), Permission),
        ("SERVER_DOWN", "permission denied", None, Network),
        ("TOOL_ERROR", "access denied", Some(r#"{"status":404}"#), NotFound),
        ("TOOL_ERROR", "failed", Some(r#"{"error":{"code":-32602}}"#), Validation),
        ("TOOL_ERROR", "failed", Some(r#"{"code":"ECONNREFUSED"}"#), Network),
        ("TOOL_ERROR", "failed", Some(r#"{"response":{"statusCode":"429"}}"#), RateLimit),
        ("TOOL_ERROR", "failed", Some(r#"{"error":{"message":"no such user"}}"#), NotFound),
        ("TOOL_ERROR", "failed", Some(r#"{"code":"rate_limit_exceeded"}"#), RateLimit),
        ("TOOL_ERROR", "failed", Some("not json"), Unknown),
        ("SERVER_ERROR", "`fs:read` answered: ENOENT", None, NotFound),
        ("PROGRAM_ERROR", "oops", None, Unknown),
        ("ENOENT", "oops", None, NotFound),
    ] {
        assert_eq!(of(code, message, data), kind, "{code} {message} {data:?}");
    }
}

#[test]
fn blocked_is_what_the_capability_is_not_to_blame_for() {
    let blocked = |code: &str, message: &str| is_blocked(of(code, message, None), code);
    for code in ["CANCELLED", "ABORTED", "DENIED", "RATE_LIMITED", "BUSY", "SERVER_DOWN", "SERVER_STARTING"] {
        assert!(blocked(code, ""), "{code}");
    }
    for code in ["INVALID_ARGUMENTS", "NOT_ACCEPTED", "QUARANTINED", "UNAUTHORIZED", "INPUT_REQUIRED"] {
        assert!(blocked(code, ""), "{code}");
    }
    assert!(blocked("TOOL_ERROR", "429 Too Many Requests"));
    for (code, message) in
        [("TOOL_ERROR", "ENOENT"), ("TOOL_ERROR", "access denied"), ("TIMEOUT", ""), ("DOWNSTREAM_DIED", "")]
    {
        assert!(!blocked(code, message), "{code} {message}");
    }
}
