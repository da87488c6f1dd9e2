package message

import "strings"

const anchorStart, anchorEnd = `<a href="`, `</a>`

// guardAnchors makes anchors that lead to {{link}} optional: without a link the words of the anchor
// remain, so that no page has an anchor with an empty address. Anchors do not contain each other.
func guardAnchors(parts []part) []part {
	var list []part
	closing := false // the anchor that was opened last is optional
	for i := 0; i < len(parts); i++ {
		q := parts[i]
		if q.group != nil {
			q.group = guardAnchors(q.group)
		}
		if at := strings.Index(q.literal, anchorEnd); closing && at >= 0 {
			list, closing = append(list, part{literal: q.literal[:at]}, whereLinked(part{variable: VarLink, silent: true}, part{literal: anchorEnd})), false
			q.literal = q.literal[at+len(anchorEnd):]
		}
		before, opens := strings.CutSuffix(q.literal, anchorStart)
		if !opens || i+2 >= len(parts) || parts[i+1].variable != VarLink || parts[i+1].fallback != "" {
			list = append(list, q)
			continue
		}
		rest := parts[i+2]
		end := strings.IndexByte(rest.literal, '>') + 1
		if end == 0 { // a title with a variable
			list = append(list, q)
			continue
		}
		link := parts[i+1]
		link.hasOwn = false // an empty fallback is no address
		list = append(list, part{literal: before}, whereLinked(part{literal: anchorStart}, link, part{literal: rest.literal[:end]}))
		parts[i+2].literal = rest.literal[end:]
		closing, i = true, i+1
	}
	return list
}

// whereLinked is left out of messages without a link.
func whereLinked(parts ...part) part { return part{group: parts} }
