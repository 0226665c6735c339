//! Names and paths of clients.

use expect_test::expect;
use pml_clients::{CLIENTS, Directories, Scope, System, find, nearest};

fn paths(system: System, home: &str, project: &str) -> String {
    let directories = Directories { project: Some(project.to_owned()), ..Directories::below(home, system) };
    let mut out = String::new();
    for client in CLIENTS {
        for location in client.resolve(&directories) {
            let keys = location.shape.path.join(" > ");
            out.push_str(&format!("{} {} {} [{keys}]\n", client.id, location.scope.name(), location.path));
        }
    }
    out
}

#[test]
fn paths_on_linux() {
    expect![[r#"
        claude-desktop user /home/ada/.config/Claude/claude_desktop_config.json [mcpServers]
        claude-code user /home/ada/.claude.json [mcpServers]
        claude-code project /work/app/.mcp.json [mcpServers]
        claude-code local /home/ada/.claude.json [projects > /work/app > mcpServers]
        cursor user /home/ada/.cursor/mcp.json [mcpServers]
        cursor project /work/app/.cursor/mcp.json [mcpServers]
        vscode user /home/ada/.config/Code/User/mcp.json [servers]
        vscode user /home/ada/.config/Code - Insiders/User/mcp.json [servers]
        vscode user /home/ada/.config/Code/User/settings.json [mcp > servers]
        vscode project /work/app/.vscode/mcp.json [servers]
        vscode project /work/app/.vscode/settings.json [mcp > servers]
        windsurf user /home/ada/.codeium/windsurf/mcp_config.json [mcpServers]
        codex user /home/ada/.codex/config.toml [mcp_servers]
        codex project /work/app/.codex/config.toml [mcp_servers]
        gemini user /home/ada/.gemini/settings.json [mcpServers]
        gemini project /work/app/.gemini/settings.json [mcpServers]
        zed user /home/ada/.config/zed/settings.json [context_servers]
        zed project /work/app/.zed/settings.json [context_servers]
        cline user /home/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json [mcpServers]
        cline user /home/ada/.cline/data/settings/cline_mcp_settings.json [mcpServers]
        roo user /home/ada/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json [mcpServers]
        roo project /work/app/.roo/mcp.json [mcpServers]
        continue user /home/ada/.continue/config.yaml [mcpServers]
        junie user /home/ada/.junie/mcp/mcp.json [mcpServers]
        junie project /work/app/.junie/mcp/mcp.json [mcpServers]
        opencode user /home/ada/.config/opencode/opencode.json [mcp]
        opencode user /home/ada/.config/opencode/opencode.jsonc [mcp]
        opencode project /work/app/opencode.json [mcp]
        opencode project /work/app/opencode.jsonc [mcp]
        goose user /home/ada/.config/goose/config.yaml [extensions]
    "#]].assert_eq(&paths(System::Linux, "/home/ada", "/work/app"));
}

#[test]
fn paths_on_macos() {
    let paths = paths(System::MacOs, "/Users/ada", "/work/app");
    let user: Vec<&str> = paths.lines().filter(|line| line.contains(" user ")).collect();
    expect![[r#"
        claude-desktop user /Users/ada/Library/Application Support/Claude/claude_desktop_config.json [mcpServers]
        claude-code user /Users/ada/.claude.json [mcpServers]
        cursor user /Users/ada/.cursor/mcp.json [mcpServers]
        vscode user /Users/ada/Library/Application Support/Code/User/mcp.json [servers]
        vscode user /Users/ada/Library/Application Support/Code - Insiders/User/mcp.json [servers]
        vscode user /Users/ada/Library/Application Support/Code/User/settings.json [mcp > servers]
        windsurf user /Users/ada/.codeium/windsurf/mcp_config.json [mcpServers]
        codex user /Users/ada/.codex/config.toml [mcp_servers]
        gemini user /Users/ada/.gemini/settings.json [mcpServers]
        zed user /Users/ada/.config/zed/settings.json [context_servers]
        cline user /Users/ada/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json [mcpServers]
        cline user /Users/ada/.cline/data/settings/cline_mcp_settings.json [mcpServers]
        roo user /Users/ada/Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json [mcpServers]
        continue user /Users/ada/.continue/config.yaml [mcpServers]
        junie user /Users/ada/.junie/mcp/mcp.json [mcpServers]
        opencode user /Users/ada/.config/opencode/opencode.json [mcp]
        opencode user /Users/ada/.config/opencode/opencode.jsonc [mcp]
        goose user /Users/ada/.config/goose/config.yaml [extensions]"#]].assert_eq(&user.join("\n"));
}

#[test]
fn paths_on_windows() {
    let paths = paths(System::Windows, r"C:\Users\ada", r"D:\app");
    let user: Vec<&str> = paths.lines().filter(|line| line.contains(" user ")).collect();
    expect![[r#"
        claude-desktop user C:\Users\ada\AppData\Roaming\Claude\claude_desktop_config.json [mcpServers]
        claude-code user C:\Users\ada\.claude.json [mcpServers]
        cursor user C:\Users\ada\.cursor\mcp.json [mcpServers]
        vscode user C:\Users\ada\AppData\Roaming\Code\User\mcp.json [servers]
        vscode user C:\Users\ada\AppData\Roaming\Code - Insiders\User\mcp.json [servers]
        vscode user C:\Users\ada\AppData\Roaming\Code\User\settings.json [mcp > servers]
        windsurf user C:\Users\ada\.codeium\windsurf\mcp_config.json [mcpServers]
        codex user C:\Users\ada\.codex\config.toml [mcp_servers]
        gemini user C:\Users\ada\.gemini\settings.json [mcpServers]
        zed user C:\Users\ada\AppData\Roaming\Zed\settings.json [context_servers]
        cline user C:\Users\ada\AppData\Roaming\Code\User\globalStorage\saoudrizwan.claude-dev\settings\cline_mcp_settings.json [mcpServers]
        cline user C:\Users\ada\.cline\data\settings\cline_mcp_settings.json [mcpServers]
        roo user C:\Users\ada\AppData\Roaming\Code\User\globalStorage\rooveterinaryinc.roo-cline\settings\mcp_settings.json [mcpServers]
        continue user C:\Users\ada\.continue\config.yaml [mcpServers]
        junie user C:\Users\ada\.junie\mcp\mcp.json [mcpServers]
        opencode user C:\Users\ada\.config\opencode\opencode.json [mcp]
        opencode user C:\Users\ada\.config\opencode\opencode.jsonc [mcp]
        goose user C:\Users\ada\AppData\Roaming\Block\goose\config\config.yaml [extensions]"#]].assert_eq(&user.join("\n"));
}

#[test]
fn directories_of_programs_can_be_moved() {
    let directories = Directories {
        codex: Some("/c".to_owned()),
        claude: Some("/k".to_owned()),
        config: "/x".to_owned(),
        ..Directories::below("/h", System::Linux)
    };
    let first = |name: &str| find(name).unwrap().0.resolve(&directories)[0].path.clone();
    assert_eq!(
        [first("codex"), first("claude-code"), first("zed")],
        ["/c/config.toml", "/k/.claude.json", "/x/zed/settings.json"]
    );
    let code = find("claude-code").unwrap().0;
    assert_eq!(code.resolve(&directories).len(), 1, "without a project there are no files of one");
}

#[test]
fn names_are_found_and_near_ones_are_offered() {
    assert_eq!(find("cursor").map(|(client, scope)| (client.id, scope)), Some(("cursor", Scope::User)));
    assert_eq!(find("VS Code:workspace").map(|(c, s)| (c.id, s)), Some(("vscode", Scope::Project)));
    assert_eq!(find("claude:local").map(|(c, s)| (c.id, s)), Some(("claude-code", Scope::Local)));
    for unknown in ["windsurf:project", "curser", "cursor:planet", ""] {
        assert!(find(unknown).is_none(), "{unknown}");
    }
    let near = ["curser", "windsurf:project", "cursor:projekt", "claud-code:local", "quux", ""].map(nearest);
    let expected = [Some("cursor"), Some("windsurf"), Some("cursor"), Some("claude-code:local"), None, None];
    assert_eq!(near, expected.map(|name| name.map(str::to_owned)));
}
