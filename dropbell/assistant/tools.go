package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// freshFor is how long an OpenAPI document that was read is used, so that an upgrade of the
// installation is noticed.
const freshFor = time.Minute

// longestDocument is the largest OpenAPI document, in bytes, that is read.
const longestDocument = 16 << 20

// installation is a Dropbell that assistants read.
type installation struct {
	server   string // without a slash at the end
	personal bool   // also tools that return personal data
	client   *http.Client

	mu     sync.Mutex
	known  []tool
	readAt time.Time
}

// A tool is a reading operation of the API.
type tool struct {
	mcp.Tool
	path       string // with {names} of parameters
	parameters []parameter
}

// A parameter of an operation, as OpenAPI describes it.
type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                map[string]any
}

type operation struct {
	OperationID, Summary, Description string
	Parameters                        []parameter
	Responses                         map[string]struct{ Content map[string]any }
}

// explain is the path of the one operation of end users that is a tool: a service reads it for a user.
const explain = "/reservations/{template_id}/explain"

// userHeader names the user for whom a service reads.
const userHeader = "X-User-ID"

// personal are parts of paths whose answers hold personal data, such as addresses.
var personal = []string{"/admin/users", "/recipients", "/members", "/admin/suppressions", "/admin/events", "/deliveries", "/admin/dead-letters"}

// tools returns the tools of the installation, as its OpenAPI document describes them.
func (i *installation) tools(ctx context.Context) ([]tool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if time.Since(i.readAt) < freshFor {
		return i.known, nil
	}
	status, body, err := i.get(ctx, "/openapi.json", http.Header{}, longestDocument)
	if err != nil {
		return nil, fmt.Errorf("Dropbell cannot be reached: %w", err)
	}
	var document struct {
		Paths map[string]struct{ Get *operation }
	}
	if err := json.Unmarshal(body, &document); status != http.StatusOK || err != nil {
		return nil, fmt.Errorf("%s does not answer as Dropbell does: its OpenAPI document has status %d", i.server, status)
	}
	var found []tool
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		if o := document.Paths[path].Get; o != nil && i.offers(path, o) {
			found = append(found, newTool(path, o))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the OpenAPI document of %s has no operation that reads", i.server)
	}
	i.known, i.readAt = found, time.Now()
	return found, nil
}

// offers reports whether the operation is a tool: staff's, answered as JSON, without personal data
// unless that was asked for.
func (i *installation) offers(path string, o *operation) bool {
	if path != explain && !strings.HasPrefix(path, "/admin/") || o.Responses["200"].Content["application/json"] == nil {
		return false
	}
	return i.personal || !slices.ContainsFunc(personal, func(part string) bool { return strings.Contains(path, part) })
}

func newTool(path string, o *operation) tool {
	t := tool{path: path, parameters: o.Parameters}
	for i := range t.parameters {
		if p := &t.parameters[i]; p.Name == userHeader {
			p.Required, p.Description = true, "The customer's id. The key needs the scope act-as-user."
		}
	}
	properties, required := map[string]any{}, []string{}
	for _, p := range t.parameters {
		if p.In == "header" && p.Name != userHeader {
			continue
		}
		schema := maps.Clone(p.Schema)
		if schema == nil {
			schema = map[string]any{}
		}
		if p.Description != "" {
			schema["description"] = p.Description
		}
		properties[p.Name] = schema
		if p.Required {
			required = append(required, p.Name)
		}
	}
	closed := false
	t.Tool = mcp.Tool{
		Name: o.OperationID, Title: o.Summary, Description: strings.TrimSpace(o.Summary + ". " + o.Description),
		InputSchema: map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false},
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
	}
	return t
}

// call runs a tool. What the installation refuses is told to the assistant, which can try again
// with other arguments.
func (i *installation) call(ctx context.Context, t tool, key string, arguments json.RawMessage) *mcp.CallToolResult {
	path, header, err := t.request(arguments)
	if err != nil {
		return failed(err.Error())
	}
	header.Set("Authorization", "Bearer "+key)
	status, body, err := i.get(ctx, "/api/v1"+path, header, largest)
	switch {
	case err != nil:
		return failed("Dropbell does not answer: " + err.Error())
	case len(body) > largest:
		return failed(fmt.Sprintf("The answer has more than %d KiB. Ask for fewer rows with limit, or narrow the list.", largest>>10))
	case status == http.StatusOK:
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(body)}}}
	}
	return failed(string(body))
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// request returns the path with query and the headers of a call with arguments.
func (t tool) request(arguments json.RawMessage) (string, http.Header, error) {
	values := map[string]any{}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &values); err != nil {
			return "", nil, errors.New("the arguments must be a JSON object")
		}
	}
	path, query, header := t.path, url.Values{}, http.Header{}
	for _, p := range t.parameters {
		value, given := values[p.Name]
		delete(values, p.Name)
		if !given || value == nil {
			if p.Required {
				return "", nil, fmt.Errorf("the argument %s is missing", p.Name)
			}
			continue
		}
		text, err := inText(value)
		switch {
		case err != nil:
			return "", nil, fmt.Errorf("the argument %s: %w", p.Name, err)
		case p.In == "path" && (text == "" || text == "." || text == ".."):
			return "", nil, fmt.Errorf("the argument %s must be an id", p.Name)
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(text))
		case p.In == "query":
			query.Set(p.Name, text)
		case p.In == "header":
			header.Set(p.Name, text)
		}
	}
	for name := range values {
		return "", nil, fmt.Errorf("there is no argument %s", name)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, header, nil
}

// inText returns value as a parameter of an address: lists are joined by commas.
func inText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool, float64:
		text, err := json.Marshal(v)
		return string(text), err
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			part, err := inText(e)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("text, a number, true, false or a list is expected")
}

// get reads an address of the installation, and of an answer with more than limit bytes one byte more.
func (i *installation) get(ctx context.Context, path string, header http.Header, limit int64) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.server+path, nil)
	if err != nil {
		return 0, nil, err
	}
	request.Header = header
	answer, err := i.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	return answer.StatusCode, body, err
}
