package docs

import (
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/webhook"
	"dropbell/domain/delivery"
	"dropbell/views/i18n"
	"dropbell/web/api/pipeline"
)

// elsewhere are the fault codes that no operation of the API answers with: codes of the console and
// its files, of links, and of workers.
const elsewhere = ` dress_doors dress_state dress_there dress_users audience_gone audience_other_shop batch_not_found channel_not_testable channel_paused consents_taken coupon_raced dead_letter_job_not_found
	dead_message_not_found email_taken empty_link export_store_away half_sign_in_ended job_lease_lost job_over job_workers_died key_not_found key_repeated
	last_admin last_second_factor lease_lost limited_to_shops link_invalid malformed cross_origin no_job no_rows no_user_column
	no_work not_firable not_startable passkeys_unavailable password_link_invalid passwords_off range_too_large report_link_invalid
	report_links_off report_links_too_many second_factor_fixed second_factor_missing second_factor_needed
	second_factor_not_found second_factor_refused second_factor_sealed second_factor_taken second_factors_full sheet_bad_row sheet_too_large
	sheet_unreadable sign_in_refused slot_not_found sso_attempt sso_not_asked_again sso_refused sso_unavailable staff_disabled too_many_contacts_shown too_many_tests
	staff_not_found too_many_rows unwritable upload_not_found
	campaign_draft_in_use destination_not_found draft_in_use queue_not_found queue_task_active queue_task_not_found too_late_to_undo
	too_many_destinations too_many_views view_not_found view_taken model_not_found model_taken too_many_models series_day_gone recipe_not_found browser_not_found
	provider_not_found providers_key_missing provider_secrets_sealed provider_in_use too_many_providers
	callback_unreadable callback_unverified shop_not_movable pass_devices_exceeded pass_not_found pass_token_invalid `

// Every fault code of a rule or of the protocol is in the list of the API page or in elsewhere.
// Each code of the list has a remedy in every language.
func TestEveryCodeHasARemedy(t *testing.T) {
	listed := map[string]bool{}
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pipeline.Codes() {
		listed[c.Code] = true
		for _, l := range languages.All() {
			if !l.Has("docs.fix." + c.Code) {
				t.Errorf("%s has no docs.fix.%s", l.Tag, c.Code)
			}
		}
	}
	for _, key := range languages.Default().Keys() {
		if code, ok := strings.CutPrefix(key, "docs.fix."); ok && !listed[code] {
			t.Errorf("%s is about no code of the list", key)
		}
	}
	known := strings.Fields(elsewhere)
	for code, file := range faults(t) {
		if !listed[code] && !slices.Contains(known, code) {
			t.Errorf("%s refuses with %s: add it to web/api/pipeline/codes.go with a remedy, or to elsewhere here", file, code)
		}
	}
}

// faults are the codes of faults in the rules and the API, by code.
func faults(t *testing.T) map[string]string {
	t.Helper()
	made, found := regexp.MustCompile(`fault\.New\([^,]+, "([a-z_]+)"`), map[string]string{}
	root := os.DirFS("../../..")
	for _, below := range []string{"domain", "web/api"} {
		err := fs.WalkDir(root, below, func(name string, d fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			raw, err := fs.ReadFile(root, name)
			for _, m := range made.FindAllSubmatch(raw, -1) {
				found[string(m[1])] = name
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 80 {
		t.Fatalf("only %d codes were found", len(found))
	}
	return found
}

// The webhook call shown on the page has a valid signature, and the fields and headers of a call made
// by the sender.
func TestWebhookPageShowsWhatIsSent(t *testing.T) {
	seconds, err := strconv.ParseInt(sampleTimestamp, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	hook, err := standardwebhooks.NewWebhook(sampleSecret)
	if err != nil {
		t.Fatal(err)
	}
	if signed, err := hook.Sign(sampleID, time.Unix(seconds, 0), []byte(sampleBody)); err != nil || signed != sampleSignature {
		t.Errorf("the signature of the example is %s, %v", signed, err)
	}
	type body struct{ Messages []map[string]any }
	var sent, shown body
	var headers http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		headers = r.Header.Clone()
		if err := json.Unmarshal(raw, &sent); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	sender, err := webhook.New(webhook.Config{URL: server.URL, Secret: sampleSecret})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	sender.Send(t.Context(), sendertest.Messages(delivery.Webhook, 1))
	if err := json.Unmarshal([]byte(sampleBody), &shown); err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(maps.Keys(sent.Messages[0]))
	if got := slices.Sorted(maps.Keys(shown.Messages[0])); !slices.Equal(got, want) {
		t.Errorf("the example has %v, the sender sends %v", got, want)
	}
	var fields []string
	for _, f := range webhooks().Fields {
		fields = append(fields, strings.TrimPrefix(f.Name, "messages[]."))
	}
	if slices.Sort(fields); !slices.Equal(fields, want) {
		t.Errorf("the page explains %v, the sender sends %v", fields, want)
	}
	for line := range strings.Lines(webhooks().Headers) {
		if name, _, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "{") && headers.Get(name) == "" {
			t.Errorf("the sender sends no %s", name)
		}
	}
}
