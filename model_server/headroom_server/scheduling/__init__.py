"""PURE. Admission, order of service, batch composition and batch cost."""
