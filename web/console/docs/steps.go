package docs

import (
	"fmt"
	"strings"
	"time"

	docpages "dropbell/views/pages/docs"
)

// leadTime is how long after the page is loaded the drop of the first steps opens: a minute longer
// than the time between its reminder and its opening.
const leadTime = 6 * time.Minute

// firstSteps are the requests from the first key to a coupon. The drop opens leadTime after now.
func firstSteps(now time.Time) []docpages.Step {
	opens := now.Add(leadTime).Truncate(time.Minute).Add(time.Minute).UTC()
	body := func(format string, args ...any) string { return "<<JSON\n" + fmt.Sprintf(format, args...) + "\nJSON" }
	return []docpages.Step{
		{Key: "create", Operation: "create-template", Curl: step("POST", "/admin/templates", "", "", `-o drop.json --data-binary @- `+
			body(`{"shop_number":"10","name":"First drop","kind":"amount_off","amount_off":500,"currency":"CNY","stock":100,
 "opens_at":%q,"closes_at":%q,"valid_hours":48}`, opens.Format(time.RFC3339), opens.Add(2*time.Hour).Format(time.RFC3339))) +
			"\nDROP=$(grep -o '\"id\":\"[0-9]*\"' drop.json | head -n 1 | tr -dc 0-9)\necho \"drop $DROP\""},
		{Key: "publish", Operation: "publish-template", Curl: step("POST", "/admin/templates/$DROP/publish", "", "", "--data-binary @- "+
			body(`{"reason":"first steps"}`))},
		{Key: "reserve", Operation: "reserve", Curl: step("POST", "/reservations", "1001", "", "--data-binary @- "+
			body(`{"template_id":"$DROP","shop_number":"10","reminders":[{"channel":"app","minutes":5}]}`))},
		{Key: "inbox", Operation: "inbox", Curl: step("GET", "/inbox", "1001", "", "")},
		{Key: "claim", Operation: "claim", Curl: step("POST", "/claims", "1001", "first-steps-$DROP", "--data-binary @- "+
			body(`{"template_id":"$DROP"}`))},
	}
}

// step returns a shell command of the first steps. It acts as the user if user is set. Bodies are
// here-documents, in which variables are replaced.
func step(method, path, user, key, rest string) string {
	lines := []string{"curl -sS -X " + method + ` "$DROPBELL/api/v1` + path + `"`, `-H "Authorization: Bearer $KEY"`}
	if method == "GET" {
		lines[0] = `curl -sS "$DROPBELL/api/v1` + path + `"`
	}
	if user != "" {
		lines = append(lines, `-H "X-User-ID: `+user+`"`)
	}
	if key != "" {
		lines = append(lines, `-H "Idempotency-Key: `+key+`"`)
	}
	if rest != "" {
		lines = append(lines, `-H "Content-Type: application/json"`, rest)
	}
	return strings.Join(lines, " \\\n  ")
}
