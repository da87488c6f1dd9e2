package stories

import (
	docpages "dropbell/views/pages/docs"
)

// documentation are the pages about the API, with one operation of each kind.
func documentation() []Story {
	example := []docpages.Example{
		{Language: "curl", Text: "curl -X POST \"$DROPBELL/api/v1/reservations\" \\\n  -H \"Authorization: Bearer $TOKEN\" \\\n  -H \"Idempotency-Key: $(uuidgen)\""},
		{Language: "JavaScript", Text: "const answer = await fetch(process.env.DROPBELL + \"/api/v1/reservations\", {\n  method: \"POST\",\n});"},
		{Language: "Python", Text: "import requests"},
		{Language: "Go", Text: "package main"},
	}
	fields := []docpages.Field{
		{Name: "template_id", Type: "id", Required: true, Example: `"1"`},
		{Name: "reminders[].channel", Type: "string", Required: true, Text: "One of app, email, sms, webpush, webhook."},
		{Name: "reminders[].minutes", Type: "integer", Text: "Minutes before the opening. 5 to 60."},
	}
	operation := func(id, method, path, summary string) docpages.Operation {
		return docpages.Operation{ID: id, Method: method, Path: path, Summary: summary, Description: "All reminders are reserved, or none.",
			Parameters: fields[:1], Body: fields, Answer: fields, Examples: example,
			Answers: []docpages.Answer{{Status: "200", Text: "Added to the user's reservation."}, {Status: "409", Codes: []string{"already_reserved", "already_due"}}}}
	}
	reference := docpages.Reference{Version: "1.0.0", Base: "https://drops.example.com/api/v1",
		Credentials: []docpages.Text{{Name: "userToken", Text: "A token of the shop whose sub is the user's id in decimal and which has an exp."}, {Name: "serviceKey", Text: "A service key, dbk_…, with the scopes it needs."}},
		Groups: []docpages.Group{
			{ID: "group-1", Name: "For end users", Text: "Called by the shop's app with the user's token.", Operations: []docpages.Operation{
				operation("reserve", "POST", "/reservations", "Reserve reminders of a drop"), operation("get-reservation", "GET", "/reservations/{template_id}", "Show the user's reservation for a drop"),
				operation("cancel-reservation", "DELETE", "/reservations/{template_id}", "Cancel reminders of a drop")}},
			{ID: "group-2", Name: "For staff and automation", Text: "Called with a service key.", Operations: []docpages.Operation{
				operation("change-template", "PATCH", "/admin/templates/{id}", "Change a template")}},
		},
		Codes: []docpages.Code{{Code: "already_reserved", Status: 409, Meaning: "At least one of the reminders is reserved already; nothing was stored."},
			{Code: "already_due", Status: 409, Meaning: "At least one of the reminders is due already; nothing was changed."}}}
	steps := docpages.FirstSteps{Address: "https://drops.example.com", Steps: []docpages.Step{{Key: "create", Operation: "create-template", Curl: example[0].Text},
		{Key: "publish", Operation: "publish-template", Curl: example[0].Text}, {Key: "reserve", Operation: "reserve", Curl: example[0].Text}}}
	hooks := docpages.Webhooks{Headers: "POST /your/endpoint HTTP/1.1\nwebhook-id: msg_1\n\n{\"messages\":[]}", Secret: "whsec_ZHJvcGJlbGw=",
		Fields: []docpages.Field{{Name: "messages[].user_id", Type: "id", Required: true}}, Examples: example[1:]}
	return []Story{
		{Name: "docs/reference", Page: reference.Page(), Outside: true},
		{Name: "docs/start", Page: steps.Page(), Outside: true},
		{Name: "docs/webhooks", Page: hooks.Page(), Outside: true},
		{Name: "docs/components", Page: docpages.ComponentsAt("https://drops.example.com").Page(), Outside: true},
	}
}
