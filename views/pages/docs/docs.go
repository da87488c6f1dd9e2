// Package docs holds the pages about the HTTP API.
package docs

import (
	"context"
	"slices"
	"strings"

	"dropbell/views/ui"
)

// Reference is the page of all operations.
type Reference struct {
	// Version is the version of the contract, Base the address below which the operations are.
	Version, Text, Base string
	Credentials         []Text
	Groups              []Group
	Codes               []Code
}

// Text is a named text of the OpenAPI document, in English.
type Text struct{ Name, Text string }

// Group is a tag of the OpenAPI document with its operations.
type Group struct {
	ID, Name, Text string
	Operations     []Operation
}

// Operation is one method of one address.
type Operation struct {
	ID, Method, Path, Summary, Description string
	Parameters, Body, Answer               []Field
	Answers                                []Answer
	Examples                               []Example
}

// Example is a request, or a receiver of a request, in a programming language.
type Example struct{ Language, Text string }

// Field is a parameter, or a part of a body: "reminders[].minutes".
type Field struct {
	Name, Type, Text, Example string
	Required                  bool
}

// Answer is an answer of an operation; Codes are the codes of refusals.
type Answer struct {
	Status, Text string
	Codes        []string
}

// Code is an error code. The catalogues have its remedy as "docs.fix." + Code.
type Code struct {
	Code    string
	Status  int
	Meaning string
}

// FirstSteps is the page that leads from a key to a coupon.
type FirstSteps struct {
	// Address is where the reader reaches the server.
	Address string
	Steps   []Step
}

// Step is one request; the catalogues have its title and text as "docs.start." + Key.
type Step struct{ Key, Operation, Curl string }

// Webhooks is the page about calls of the channel webhook.
type Webhooks struct {
	// Headers is a whole call, signed with Secret.
	Headers, Secret string
	// Fields are described in the catalogues, as "docs.hook.field." + the last part of the name.
	Fields   []Field
	Examples []Example
}

// Components is the page about the web components for pages of shops.
type Components struct {
	// Markup is of a shop's page, Worker is the shop's file of the service worker.
	Markup, Worker string
}

// ComponentsAt returns the page about the components of the server at address.
func ComponentsAt(address string) Components {
	element := func(name, more string) string {
		return "<dropbell-" + name + more + ` token-url="/dropbell-token"></dropbell-` + name + ">\n"
	}
	return Components{
		Markup: `<script type="module" src="` + address + `/components/v1.js"></script>` + "\n\n" + element("countdown", ` template="42"`) +
			element("reserve", ` template="42" minutes="10"`) + element("claim", ` template="42"`) + element("draw", ` template="43"`) + element("push", "") + element("inbox", ""),
		Worker: "// https://shop.example/dropbell-push.js\nself.dropbell = { title: \"Tea House\", icon: \"/icon-192.png\", url: \"/\" };\n" +
			`importScripts("` + address + `/components/v1-push.js");`,
	}
}

// page is one of the pages, as the menu has it.
type page struct{ key, url, title, description string }

var pages = []page{
	{"reference", "/docs", "docs.reference", "docs.reference.about"},
	{"start", "/docs/start", "docs.start", "docs.start.about"},
	{"webhooks", "/docs/webhooks", "docs.webhooks", "docs.webhooks.about"},
	{"components", "/docs/components", "docs.components", "docs.components.about"},
}

// languages are the languages of examples, rules the sections before the operations.
var (
	languages   = []string{"curl", "JavaScript", "Python", "Go"}
	rules       = []string{"address", "credentials", "format", "repeating", "limits"}
	hookAnswers = []string{"ok", "refused", "gone", "later", "other"}
	// elements are the web components, pushStates the states of dropbell-push.
	elements   = []string{"countdown", "reserve", "claim", "draw", "push", "inbox"}
	pushStates = []string{"off", "on", "denied", "unsupported", "ios", "unavailable", "signed-out"}
)

// explained are the fields with their meaning in the viewer's language.
func (p Webhooks) explained(ctx context.Context) []Field {
	list := slices.Clone(p.Fields)
	for i, f := range list {
		list[i].Text = ui.T(ctx, "docs.hook.field."+strings.TrimPrefix(f.Name, "messages[]."))
	}
	return list
}

// methodTone is the colour of a method: reading, adding, changing, removing.
func methodTone(method string) string {
	switch method {
	case "GET":
		return "is-info"
	case "POST":
		return "is-good"
	case "DELETE":
		return "is-bad"
	}
	return "is-warn"
}
