package stories

import (
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff/alert"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
)

func alerts() []Story {
	ended := Now().Add(-time.Hour)
	list := []alert.Alert{
		{ID: 5, Condition: alert.Condition{Kind: alert.Channel, Name: "email", Path: "/channels"}, RaisedAt: Now().Add(-time.Minute), Repeated: 4},
		{ID: 4, Condition: alert.Condition{Kind: alert.Late, Name: "Moon cake night: ¥20 off everything at Harbour Tea House", Count: 12_400, Path: "/templates/1"}, RaisedAt: Now().Add(-3 * time.Minute)},
		{ID: 3, Condition: alert.Condition{Kind: alert.SoldOut, Name: "Morning rush", Count: 50_000, Path: "/templates/5"}, RaisedAt: Now().Add(-2 * time.Hour), EndedAt: &ended, Read: true},
		{ID: 2, Condition: alert.Condition{Kind: alert.Job, Name: "May.xlsx", Count: 3, Detail: "failed", Path: "/jobs/1"}, RaisedAt: Now().Add(-26 * time.Hour), EndedAt: &ended, Read: true},
	}
	for i, detail := range []string{"failing", "gone"} {
		list = append(list, alert.Alert{ID: int64(1 - i), Condition: alert.Condition{Kind: alert.Endpoint, Name: "https://old.example.com/", Detail: detail, Path: "/webhooks/3"}, RaisedAt: Now().Add(-time.Duration(27+i) * time.Hour), Read: i > 0})
	}
	group := alert.Destination{ID: 1, Shop: 10, Form: alert.Feishu, Name: "Night shift", URL: "https://open.feishu.cn/open-apis/bot/v2/hook/0123456789abcdef", Kinds: alert.Kinds()}
	all := alert.Destination{ID: 2, Form: alert.Slack, Name: "Operations", URL: "https://hooks.slack.com/services/T0/B0/xyz12345", Kinds: []alert.Kind{alert.Channel, alert.Late}}
	mail := alert.Destination{ID: 3, Shop: 10, Form: alert.Email, Name: "Anna", URL: "anna@harbour-tea.example", Kinds: []alert.Kind{alert.SoldOut}}
	s := workpages.AlertSettings{Wanted: alert.Kinds(), Destinations: []alert.Destination{all, group, mail}, Shops: []ui.Option{{Value: "0", Label: "All shops"}, {Value: "10", Label: "Harbour Tea House"}},
		Names: map[int64]string{10: "Harbour Tea House"}, Values: map[string]string{"form": "feishu", "language": "en"}, Kinds: []string{"channel", "late"}, MayChange: func(alert.Destination) bool { return true }}
	s.Log = []alert.Delivery{{ID: 2, Alert: list[0], Destination: group, Attempts: 3, State: alert.Waiting, Detail: "HTTP 503", CreatedAt: Now().Add(-time.Minute)},
		{ID: 1, Alert: list[1], Destination: all, Attempts: 1, State: alert.Sent, Detail: "HTTP 200", CreatedAt: Now().Add(-3 * time.Minute)}}
	s.Browsers = workpages.Browsers{PublicKey: "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM", Worker: "/alerts/push-worker.js", List: []alert.Browser{
		{ID: 1, Agent: "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0 Safari/537.36", CreatedAt: Now().Add(-time.Hour), Last: alert.Sent},
		{ID: 2, Agent: "Mozilla/5.0 (iPhone; CPU iPhone OS 20_0 like Mac OS X) Mobile Safari/604.1", CreatedAt: Now().Add(-26 * time.Hour), Last: alert.Failed, Detail: "the provider answered HTTP 413"}}}
	wrong := s
	wrong.Browsers = workpages.Browsers{}
	wrong.Errors = []fault.Field{{Name: "url", Key: "rule.claim_url", Message: "must be an http or https address of at most 500 characters"}}
	return []Story{
		{Name: "alerts/list", Page: workpages.Alerts{List: list, Next: "/alerts?before=2"}.Page()},
		{Name: "alerts/none", Page: workpages.Alerts{}.Page()},
		{Name: "alerts/settings", Page: s.Page()},
		{Name: "alerts/settings_wrong", Page: wrong.Page()},
	}
}
