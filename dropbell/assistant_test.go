package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dropbell/dropbell/assistant"
)

// TestAssistants reads a running installation by the Model Context Protocol, over standard input
// and output and over HTTP: every tool only reads, a drop is found by its name, and what the API
// refuses is told to the assistant as the API says it.
func TestAssistants(t *testing.T) {
	server := serveAll(t)
	drop := openDrop(t, server)
	t.Run("standard input and output", func(t *testing.T) { assist(t, overPipes(t, server, stepsKey), drop) })
	address := overHTTP(t, server)
	t.Run("HTTP", func(t *testing.T) {
		assist(t, connect(t, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: withKey(stepsKey)}), drop)
	})
	t.Run("a key that nobody has", func(t *testing.T) {
		session := connect(t, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: withKey("dbk_unknownunknownunknownunkn")})
		if failed, text := call(t, session, "list-templates", nil); !failed || !strings.Contains(text, `"unauthenticated"`) {
			t.Errorf("answered %v %s", failed, text)
		}
	})
	t.Run("a line that is no JSON is answered, and the session goes on", func(t *testing.T) {
		in, toCommand := io.Pipe()
		fromCommand, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- assistant.Main(t.Context(), []string{"--server", server}, environment("DROPBELL_KEY", stepsKey), in, out)
		}()
		answers := bufio.NewScanner(fromCommand)
		for line, answer := range map[string]string{"{not json": "-32700", "": "", `{"jsonrpc":"2.0","id":7,"method":"ping"}`: `"id":7`} {
			if _, err := io.WriteString(toCommand, line+"\n"); err != nil {
				t.Fatal(err)
			}
			if answer != "" && (!answers.Scan() || !strings.Contains(answers.Text(), answer)) {
				t.Errorf("%s was answered %q", line, answers.Text())
			}
		}
		toCommand.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("refused before the installation is asked", func(t *testing.T) {
		for name, header := range map[string][2]string{"no key": {"Accept", "application/json"}, "another origin": {"Sec-Fetch-Site", "cross-site"}} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set(header[0], header[1])
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %d", name, answer.StatusCode)
			}
		}
	})
}

// assist reads as an assistant does that is asked how a drop went.
func assist(t *testing.T, session *mcp.ClientSession, drop string) {
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if !tool.Annotations.ReadOnlyHint || tool.Description == "" {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
	}
	for _, wanted := range []string{"list-templates", "get-admin-template", "template-forecast", "template-money", "template-balance", "list-campaigns", "explain-reservation"} {
		if !slices.Contains(names, wanted) {
			t.Errorf("no tool %s among %v", wanted, names)
		}
	}
	for _, name := range names {
		if strings.Contains(name, "recipient") || strings.Contains(name, "user") || strings.Contains(name, "suppression") {
			t.Errorf("%s returns personal data", name)
		}
	}
	failed, text := call(t, session, "list-templates", map[string]any{"q": "20 off", "state": []string{"scheduled", "open"}, "limit": 5})
	var list struct{ Templates []struct{ ID, Name string } }
	if err := json.Unmarshal([]byte(text), &list); failed || err != nil || len(list.Templates) != 1 || list.Templates[0].ID != drop {
		t.Fatalf("found %v %v %s", failed, err, text)
	}
	for _, name := range []string{"get-admin-template", "template-money", "template-balance"} {
		if failed, text := call(t, session, name, map[string]any{"id": drop}); failed || !json.Valid([]byte(text)) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, wrong := range []struct {
		tool      string
		arguments map[string]any
		says      string
	}{
		{"get-admin-template", map[string]any{"id": "999999"}, "template_not_found"},
		{"get-admin-template", nil, "id"},
		{"get-admin-template", map[string]any{"id": "../campaigns"}, "id"},
		{"get-admin-template", map[string]any{"id": drop, "colour": "red"}, "colour"},
		{"explain-reservation", map[string]any{"template_id": drop, "X-User-ID": "7"}, "not_reserved"},
	} {
		if failed, text := call(t, session, wrong.tool, wrong.arguments); !failed || !strings.Contains(text, wrong.says) {
			t.Errorf("%s %v: %v %s", wrong.tool, wrong.arguments, failed, text)
		}
	}
}

// call returns whether a tool failed, and its text.
func call(t *testing.T, session *mcp.ClientSession, tool string, arguments map[string]any) (bool, string) {
	t.Helper()
	if arguments == nil {
		arguments = map[string]any{}
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return true, err.Error() // the protocol's own refusal
	}
	return result.IsError, result.Content[0].(*mcp.TextContent).Text
}

func connect(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// overPipes starts the command with pipes as its input and output.
func overPipes(t *testing.T, server, key string) *mcp.ClientSession {
	in, toCommand := io.Pipe()
	fromCommand, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- assistant.Main(context.Background(), []string{"--server", server}, environment("DROPBELL_KEY", key), in, out)
	}()
	t.Cleanup(func() { // after the session was closed, which ends the input
		if err := <-ended; err != nil {
			t.Errorf("dropbell mcp: %v", err)
		}
	})
	return connect(t, &mcp.IOTransport{Reader: fromCommand, Writer: toCommand})
}

// overHTTP starts the command as a server and returns its address.
func overHTTP(t *testing.T, server string) string {
	ctx, stop := context.WithCancel(context.Background())
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- assistant.Main(ctx, []string{"--server", server, "--http", "127.0.0.1:0"}, environment(), nil, out)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("dropbell mcp: %v", err)
		}
	})
	line := make([]byte, 200)
	n, err := said.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`http://127\S+/mcp`).FindAllString(string(line[:n]), -1)[0]
}

// withKey returns a client that sends a service key.
func withKey(key string) *http.Client {
	return &http.Client{Transport: keyed(key)}
}

type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}
