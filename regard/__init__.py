"""regard"""
