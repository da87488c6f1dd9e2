package ui

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// labels are the keys of further texts that each icon may stand next to, in addition to the text of
// its own meaning.
var labels = map[string]string{
	"arrow-down": `^message\.block\.down$`, "arrow-up": `^message\.block\.up$`,
	"ban": `cancel$|revoke$|takeback$|withdraw$`, "bell-ringing": `^overview\.first_title$|draft_title$|reminder`, "broadcast": `^tests\.none_title$`,
	"building-store": `shop|^shops\.`, "calendar-event": `^calendar\.|dates$`, "calendar-time": `^do\.move$`, "chart-line": `to_report$|compare|trend|^report\.open$|results`,
	"chevron-left": `first_page|back$|earlier`, "chevron-right": `next_page|further$|later`, "circle-check": `empty_title$|none_title$|none$|all_well$|done`,
	"clock": `notices\.empty_title|gone_title`, "copy": `^ui\.copy`, "copy-plus": `clone$`, "download": `download|csv$|template$|data$|receipt$|export`,
	"eraser": `^templates\.clear$|clear`, "external-link": `asynqmon|open`, "eye": `review$|show_contacts$|cockpit\.open$|approval\.none_title|preview|look$`,
	"file-text": `^message\.link$|message`, "filter": `filters?$`, "fingerprint": `passkey`, "flag": `close$`, "gauge": `rate|forecast`, "gift": `^grants\.|^gift\.(title|reissue)$`,
	"history": `^audit\.|history`, "key": `^apikeys\.|^nav\.keys$|^hooks\.rotate$`, "device-mobile": `add_app$`, "keyboard": `^codes\.`, "list-details": `list$|^setup\.show$`, "lock": `lock`,
	"mail": `mail`, "message": `sms`, "mood-empty": `^find\.none$|none_title$|bad_title$|broken_title$|nobody_title$|empty`, "packages": `^do\.stock$`, "pencil": `edit$|rename`,
	"photo": `^pictures\.`, "player-pause": `pause$`, "player-play": `resume$`, "plus": `^gift\.title$|new$|add|blank$|generate$|new_list$|create`, "power": `^provider\.(enable|disable)$|^browsers\.remove$`, "printer": `print`,
	"refresh": `replay_one$|restore$|again$|requeue$|retry$|replay$|count$|estimate$|Resume them again`, "rocket": `publish$`, "scale": `balance`,
	"search": `look$|find$|further_title$|search`, "send": `^alerts\.try$|test|announce|deliveries|send`, "shield-lock": `security\.manage$`, "speakerphone": `campaign`,
	"stack-2": `job`, "tag": `coupon|^together\.`, "template": `models\.`, "ticket": `template|drop`, "trash": `gone\.title$|discard$|delete$|remove|^draft\.gone`, "user": `user$`,
	"user-circle": `account`, "user-x": `erase$`, "users": `users|segments\.empty_title|recipients\.empty_title|audience`, "x": `dismiss|remove|close`,
	"bell": `^alerts\.`, "archive": `archive|^explain\.removed_title$`, "bolt": `run`, "alert-circle": `.`, "alert-triangle": `.`, "webhook": `hook`, "world": `push`,
}

var buttons = []*regexp.Regexp{
	regexp.MustCompile(`Label: (?:ui\.)?T\(ctx, "([^"]+)"[^}]*?Icon: *"([a-z0-9-]+)"`),
	regexp.MustCompile(`ui\.Empty\(("")?"?([a-z0-9-]+)", ui\.T\(ctx, "([^"]+)"`),
}

// Each icon has one meaning and each meaning one icon. No button or empty list has an icon with
// another meaning.
func TestEachIconMeansOneThing(t *testing.T) {
	meant := map[string]string{}
	for name, meaning := range IconMeanings {
		if iconShapes[name] == "" {
			t.Errorf("%s has a meaning and no file", name)
		}
		if other := meant[meaning]; other != "" {
			t.Errorf("%s and %s both mean %q", name, other, meaning)
		}
		meant[meaning] = name
	}
	used := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".templ" && path.Ext(name) != ".go" || strings.HasSuffix(name, "_templ.go") || strings.HasSuffix(name, "_test.go") || name == "ui/icon.go" {
			return err
		}
		raw, err := os.ReadFile("../" + name)
		if err != nil {
			return err
		}
		text := string(raw)
		for icon := range iconShapes {
			if strings.Contains(text, `"`+icon+`"`) {
				used[icon] = true
			}
		}
		for _, m := range buttons[0].FindAllStringSubmatch(text, -1) {
			beside(t, name, m[2], m[1])
		}
		for _, m := range buttons[1].FindAllStringSubmatch(text, -1) {
			beside(t, name, m[2], m[3])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for icon := range iconShapes {
		if IconMeanings[icon] == "" {
			t.Errorf("%s has no meaning in IconMeanings", icon)
		}
		if !used[icon] {
			t.Errorf("%s is used nowhere: remove the file", icon)
		}
	}
}

func beside(t *testing.T, file, icon, key string) {
	t.Helper()
	if pattern := labels[icon]; pattern == "" || !regexp.MustCompile(pattern).MatchString(key) {
		t.Errorf("%s shows %s beside %s; the icon means %q: choose another, or add the text to labels", file, icon, key, IconMeanings[icon])
	}
}
