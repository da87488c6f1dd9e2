package template

// Own returns s without what does not belong to its kind and target: nothing is
// stored, and shown, that no rule looks at. A percentage may have a threshold.
func (s Spec) Own() Spec {
	switch s.Kind {
	case AmountOff:
		s.Threshold, s.PercentOff, s.MaxOff = 0, 0, 0
	case ThresholdOff:
		s.PercentOff, s.MaxOff = 0, 0
	case PercentOff:
		s.AmountOff = 0
	}
	if s.Target != Product {
		s.Product = ""
	}
	return s
}
