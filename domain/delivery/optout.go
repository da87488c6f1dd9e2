package delivery

import (
	"html/template"
	"net/url"
	"strings"

	"dropbell/domain/message"
)

// OptOut returns the text and HTML of m's content followed by the link that turns the channel
// off, in the reader's language. The link has a complete sentence, because it ends all messages
// over the channel and not just messages like this one. Without an http or https OptOutURL the
// content is returned unchanged.
func OptOut(m Message) (text, html string) {
	text, html = m.Content.Text, m.Content.HTML
	u, err := url.Parse(m.OptOutURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return text, html
	}
	why, link := "You can turn off all our e-mail, reminders too", "Turn off e-mail"
	if message.BuiltInLanguage(m.To.Locale) == "zh" {
		why, link = "您可以关闭我们的全部邮件，包括提醒", "关闭邮件"
	}
	text += "\n\n" + why + ": " + u.String()
	if html == "" {
		return text, html
	}
	var b strings.Builder
	_ = optOutLine.Execute(&b, map[string]string{"Why": why, "Link": link, "URL": u.String()}) // strings into memory
	end := strings.LastIndex(html, "</body>")
	if end < 0 {
		end = len(html)
	}
	return text, html[:end] + b.String() + html[end:]
}

var optOutLine = template.Must(template.New("opt-out").Parse(`<p class="foot" style="margin:0;padding:0 12px 32px;text-align:center;` +
	`font-family:-apple-system,'Segoe UI',Roboto,'PingFang SC','Microsoft YaHei',sans-serif;font-size:12px;line-height:1.5;color:#5f6878;">` +
	`{{.Why}}: <a href="{{.URL}}" style="color:inherit;">{{.Link}}</a></p>
`))
